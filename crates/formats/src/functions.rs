//! From the kernel's counts of a function's calls to readings.

use crate::hist::{self, Tool};
use kdyno_model::{
    Better, ClockKind, FunctionProbe, Histogram, MetricName, Reading, Role, Unit, Value,
};

/// Nanoseconds of a microsecond, the unit of the readings.
const NS_PER_US: f64 = 1000.0;

/// The readings of one function, and what a reader must know of them.
#[derive(Debug, Default)]
pub struct Calls {
    /// `func.NAME.latency` in octaves, `func.NAME.latency_linear` in buckets of one width.
    pub readings: Vec<Reading>,
    /// Calls that were not counted, and tables that cannot be read.
    pub notes: Vec<String>,
}

/// Reads the tables of hist triggers over nanoseconds, octaves and buckets of one width, as the
/// kernel prints them one below the other, and a last line `# missed calls: N`.
#[must_use]
pub fn calls(probe: &FunctionProbe, text: &str, clock: ClockKind) -> Calls {
    let mut out = Calls::default();
    let name = &probe.function;
    for table in text.split("# event histogram").skip(1) {
        let of_octaves = table.contains("lat.log2");
        let suffix = if of_octaves {
            "latency"
        } else {
            "latency_linear"
        };
        if !table.contains("hitcount:") {
            continue;
        }
        let Ok(metric) = MetricName::new(format!("func.{name}.{suffix}")) else {
            continue;
        };
        match hist::read(table.as_bytes(), Some(Tool::HistTrigger)) {
            Ok(report) => {
                let told = report.notes.iter().map(|note| format!("{name}: {note}"));
                out.notes.extend(told);
                let sections = report.sections.into_iter();
                out.readings.extend(sections.map(|section| Reading {
                    metric: metric.clone(),
                    unit: Unit("us".to_owned()),
                    better: Better::Lower,
                    role: if of_octaves {
                        Role::Headline
                    } else {
                        Role::Diagnostic
                    },
                    clock,
                    value: Value::Histogram(in_microseconds(section.histogram)),
                }));
            }
            Err(error) => out.notes.push(format!("counts of {name}: {error}")),
        }
    }
    let missed = text.lines().find_map(|line| {
        let number = line.strip_prefix("# missed calls: ")?;
        number.trim().parse::<u64>().ok()
    });
    if let Some(missed) = missed.filter(|missed| *missed > 0) {
        out.notes.push(format!(
            "{missed} calls of {name} were not timed: too many at once"
        ));
    }
    if out.readings.is_empty() && out.notes.is_empty() {
        out.notes.push(format!("{name} was not called"));
    }
    out
}

fn in_microseconds(histogram: Histogram) -> Histogram {
    let buckets = histogram.buckets.into_iter().map(|mut bucket| {
        bucket.low /= NS_PER_US;
        bucket.high /= NS_PER_US;
        bucket
    });
    Histogram {
        buckets: buckets.collect(),
        min: histogram.min.map(|value| value / NS_PER_US),
        max: histogram.max.map(|value| value / NS_PER_US),
        sum: histogram.sum.map(|value| value / NS_PER_US),
        ..histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Calls {
        let probe = FunctionProbe {
            function: "vfs_read".to_owned(),
            filter: None,
        };
        calls(&probe, text, ClockKind::Wall)
    }

    /// Two tables as the kernel prints them one below the other.
    const TABLES: &str = "# event histogram\n#\n# trigger info: hist:keys=lat.buckets=10000:vals=hitcount:sort=hitcount:size=16384 [active]\n#\n\n{ lat: ~ 0-9999 } hitcount:          3\n{ lat: ~ 40000-49999 } hitcount:          2\n\nTotals:\n    Hits: 5\n    Entries: 2\n    Dropped: 0\n\n\n# event histogram\n#\n# trigger info: hist:keys=lat.log2:vals=hitcount:sort=hitcount:size=16384 [active]\n#\n\n{ lat: ~ 2^13 } hitcount:          3\n{ lat: ~ 2^16 } hitcount:          2\n\nTotals:\n    Hits: 5\n    Entries: 2\n    Dropped: 0\n";

    #[test]
    fn both_tables_become_readings_in_microseconds() {
        let found = of(TABLES);
        assert_eq!(found.notes, [""; 0]);
        let told: Vec<(&str, Role, f64, f64)> = found
            .readings
            .iter()
            .map(|reading| {
                let Value::Histogram(histogram) = &reading.value else {
                    panic!("{reading:?}");
                };
                let last = histogram.buckets.last().expect("a bucket");
                (reading.metric.as_str(), reading.role, last.low, last.high)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("func.vfs_read.latency_linear", Role::Diagnostic, 40.0, 50.0),
                ("func.vfs_read.latency", Role::Headline, 32.769, 65.537)
            ]
        );
    }

    #[test]
    fn what_was_not_timed_is_told() {
        let missed = format!("{TABLES}# missed calls: 7\n");
        assert_eq!(
            of(&missed).notes,
            ["7 calls of vfs_read were not timed: too many at once"]
        );
        let none = "# event histogram\n#\n# trigger info: hist:keys=lat.log2 [active]\n#\n\n\nTotals:\n    Hits: 0\n";
        assert_eq!(of(none).notes, ["vfs_read was not called"]);
        let fewer = TABLES.replace("Hits: 5", "Hits: 4");
        assert_eq!(of(&fewer).notes.len(), 2);
        assert!(of(&fewer).readings.is_empty());
        let dropped = TABLES.replace("Dropped: 0", "Dropped: 9");
        assert_eq!(
            of(&dropped).notes[0],
            "vfs_read: 9 events found no place in the kernel's table"
        );
        assert_eq!(of(&dropped).readings.len(), 2);
    }
}
