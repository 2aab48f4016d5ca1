//! Distributions as one HTML page with its drawings inside: it needs no network, no script, and
//! can be attached to a mail.
//!
//! Every run of a series weighs the same. Where a source's bucket is wider than a step of the
//! drawing, its events are spread evenly over the bucket on the logarithmic axis; nothing else is
//! made up. What lies outside of the buckets is told in words.

mod axis;
mod draw;

use super::hist::{Series, quantiles};
use crate::number::general;
use axis::Axis;
use kdyno_stats::hist::Buckets;
use std::fmt::Write;

/// What was counted in a stretch of time.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Its start, seconds from the first one.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// The events.
    pub buckets: Buckets,
}

/// Distributions in one unit.
#[derive(Clone, Debug)]
pub struct Page {
    /// What it is of.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// What is laid over each other.
    pub series: Vec<Series>,
    /// The same over time, where that is known.
    pub over_time: Vec<Stretch>,
}

/// The page; without an event it says so.
#[must_use]
pub fn render(page: &Page) -> String {
    let title = escaped(&page.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
    );
    let stretches = page.over_time.iter().map(|stretch| &stretch.buckets);
    let all = page.series.iter().flat_map(|series| &series.runs);
    let Some(axis) = Axis::over(all.chain(stretches)) else {
        out.push_str("<p>There is no event.</p>\n</body></html>\n");
        return out;
    };
    if page.series.iter().any(|series| !series.runs.is_empty()) {
        out.push_str(&legend(&page.series));
        out.push_str(&draw::shares(&page.series, &axis, &page.unit));
        out.push_str(&draw::tails(&page.series, &axis, &page.unit));
        out.push_str(&table(page));
    }
    if !page.over_time.is_empty() {
        out.push_str(&draw::heat(&page.over_time, &axis, &page.unit));
    }
    out.push_str("</body></html>\n");
    out
}

/// Colours are those of the drawings; a dash pattern stands beside each for those who see none.
fn legend(series: &[Series]) -> String {
    let mut out = String::from("<ul class=\"legend\">\n");
    for (place, series) in series.iter().enumerate() {
        let events: u64 = series.runs.iter().map(Buckets::count).sum();
        let runs = match series.runs.len() {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<li><svg width=\"36\" height=\"10\"><path class=\"s{}\" d=\"M0 5H36\"/></svg> {} \
             <span>{runs}, {events} events</span></li>",
            place % draw::STYLES,
            escaped(&series.name),
        );
    }
    out.push_str("</ul>\n");
    out
}

/// Quantiles of the events of all runs of a series put together, as buckets.
fn table(page: &Page) -> String {
    let mut out = String::from("<table><tr><th></th>");
    for (name, _) in quantiles::QUANTILES {
        let _ = write!(out, "<th>{name}</th>");
    }
    out.push_str("<th>outside</th></tr>\n");
    for series in page.series.iter().filter(|series| !series.runs.is_empty()) {
        let pooled = series.pooled();
        let _ = write!(out, "<tr><th>{}</th>", escaped(&series.name));
        for (_, p) in quantiles::QUANTILES {
            let _ = write!(out, "<td>{}</td>", quantiles::cell(&pooled, p, &page.unit));
        }
        let outside = match (pooled.below, pooled.above) {
            (0, 0) => String::new(),
            (below, above) => format!("{below} below, {above} above"),
        };
        let _ = writeln!(out, "<td>{outside}</td></tr>");
    }
    out.push_str("</table>\n");
    out
}

/// Text that is no markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A coordinate, to a tenth of a pixel.
fn px(value: f64) -> String {
    general((value * 10.0).round() / 10.0, 6)
}

const STYLE: &str = include_str!("page/style.css");

#[cfg(test)]
mod tests {
    use super::*;
    use kdyno_stats::hist::LogLinear;

    fn run(values: &[u64]) -> Buckets {
        let mut histogram = LogLinear::of_nanoseconds();
        values.iter().for_each(|value| histogram.record(*value));
        histogram.buckets()
    }

    fn page() -> Page {
        let series = |name: &str, values: &[u64]| Series {
            name: name.to_owned(),
            runs: vec![run(values), run(values)],
        };
        Page {
            title: "wait <b>".to_owned(),
            unit: "ns".to_owned(),
            series: vec![
                series("idle", &[1000, 1100, 1200, 5000]),
                series("loaded", &[1000, 900_000, 2_000_000]),
            ],
            over_time: vec![
                Stretch {
                    start_s: 0.0,
                    length_s: 1.0,
                    buckets: run(&[1000, 2000]),
                },
                Stretch {
                    start_s: 1.0,
                    length_s: 1.0,
                    buckets: run(&[1000, 4_000_000]),
                },
            ],
        }
    }

    #[test]
    fn a_page_has_its_drawings_and_no_number_that_is_none() {
        let html = render(&page());
        assert_eq!(html.matches("<svg").count(), 3 + 2, "{html}");
        assert!(html.contains("<h1>wait &lt;b&gt;</h1>"));
        assert!(html.contains("2 runs, 8 events"));
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
        let balanced = |tag: &str| {
            html.matches(&format!("<{tag}")).count() == html.matches(&format!("</{tag}>")).count()
        };
        for tag in ["svg", "g", "text", "table", "tr", "ul"] {
            assert!(balanced(tag), "{tag}");
        }
        assert!(!html.contains("http"), "nothing is fetched");
    }

    #[test]
    fn without_an_event_the_page_says_so() {
        let empty = Page {
            series: Vec::new(),
            over_time: Vec::new(),
            ..page()
        };
        assert!(render(&empty).contains("There is no event."));
        let one = Page {
            series: vec![Series {
                name: "one".to_owned(),
                runs: vec![run(&[0])],
            }],
            over_time: Vec::new(),
            ..page()
        };
        let html = render(&one);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }
}
