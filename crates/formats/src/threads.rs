//! What cyclictest prints of each thread: how late it woke at worst, and when.

/// One measuring thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Its number, from 0; with `--affinity` also that of its CPU among those allowed.
    pub number: usize,
    /// Wake-ups that were measured.
    pub wakeups: u64,
    /// Shortest lateness, microseconds.
    pub min_us: u64,
    /// Mean lateness, microseconds.
    pub mean_us: u64,
    /// Longest lateness, microseconds.
    pub max_us: u64,
    /// When the longest was, microseconds on `CLOCK_MONOTONIC`; `None` where it was not recorded.
    pub max_at_us: Option<u64>,
}

/// The threads of a run, the one that woke latest first; nothing where the text has none.
///
/// Read are the summary lines (`T: 0 (...) ... Max: 12`), or those below a histogram (`# Max
/// Latencies: 00012 00034`), and the times of spikes (`T: 0 Spike: 12: TS: 345`).
#[must_use]
pub fn worst_first(output: &str) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    for line in output.lines() {
        take(line.trim_end(), &mut threads);
    }
    for line in output.lines() {
        take_spike(line, &mut threads);
    }
    // The last column of other lines may be that of all threads; means have none.
    let means = output.lines().filter_map(|line| line.strip_prefix(MEANS));
    if let Some(count) = means.map(|means| means.split_whitespace().count()).max() {
        threads.truncate(count);
    }
    threads.retain(|thread| thread.wakeups > 0);
    threads.sort_by(|a, b| b.max_us.cmp(&a.max_us).then(a.number.cmp(&b.number)));
    threads
}

/// What stands in front of the means of all threads.
const MEANS: &str = "# Avg Latencies:";

/// More threads than this no machine has.
const MOST_THREADS: usize = 1 << 16;

fn take(line: &str, threads: &mut Vec<Thread>) {
    let fields: [(&str, Setter); 5] = [
        ("# Total:", |thread, n| thread.wakeups += n),
        ("# Histogram Overflows:", |thread, n| thread.wakeups += n),
        ("# Min Latencies:", |thread, n| thread.min_us = n),
        (MEANS, |thread, n| thread.mean_us = n),
        ("# Max Latencies:", |thread, n| thread.max_us = n),
    ];
    for (head, set) in fields {
        if let Some(numbers) = line.strip_prefix(head) {
            let numbers = numbers.split_whitespace().map_while(|n| n.parse().ok());
            for (number, value) in numbers.enumerate() {
                if let Some(thread) = entry(threads, number) {
                    set(thread, value);
                }
            }
        }
    }
    if let Some(read) = summary(line)
        && let Some(thread) = entry(threads, read.number)
    {
        *thread = read;
    }
}

/// A line as `T: 0 ( 3755) P:80 I:1000 C: 997 Min: 33 Act: 83 Avg: 85 Max: 2921`.
fn summary(line: &str) -> Option<Thread> {
    let (number, rest) = line.strip_prefix("T:")?.trim_start().split_once(' ')?;
    let value = |name: &str| {
        let behind = rest.split_once(name)?.1.trim_start();
        behind.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(Thread {
        number: number.parse().ok()?,
        wakeups: value(" C:")?,
        min_us: value("Min:")?,
        mean_us: value("Avg:")?,
        max_us: value("Max:")?,
        max_at_us: None,
    })
}

type Setter = fn(&mut Thread, u64);

/// The thread of a number, made where there is none yet.
fn entry(threads: &mut Vec<Thread>, number: usize) -> Option<&mut Thread> {
    if number >= MOST_THREADS {
        return None;
    }
    while threads.len() <= number {
        threads.push(Thread {
            number: threads.len(),
            ..Thread::default()
        });
    }
    threads.get_mut(number)
}

/// The time of a thread's longest lateness, from `T: 1 Spike: 2612: TS: 2032359023`.
fn take_spike(line: &str, threads: &mut [Thread]) -> Option<()> {
    let (number, rest) = line.strip_prefix("T:")?.split_once("Spike:")?;
    let (late, at) = rest.split_once(": TS:")?;
    let number: usize = number.trim().parse().ok()?;
    let thread = threads.get_mut(number)?;
    if late.trim().parse() == Ok(thread.max_us) {
        thread.max_at_us = at.trim().parse().ok();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_and_spikes() {
        let text = "# /dev/cpu_dma_latency set to 0us\n\
            T: 0 ( 3755) P:80 I:1000 C:    997 Min:     33 Act:   83 Avg:   85 Max:    2921\n\
            T: 1 ( 3756) P:80 I:1500 C:    666 Min:     62 Act:   87 Avg:   95 Max:    4612\n\n\
            T: 1 Spike:     782: TS:   2032309193\n\
            T: 1 Spike:    4612: TS:   2032359023\n";
        let threads = worst_first(text);
        assert_eq!(threads.len(), 2);
        assert_eq!((threads[0].number, threads[0].max_us), (1, 4612));
        assert_eq!(threads[0].max_at_us, Some(2_032_359_023));
        assert_eq!(
            threads[1],
            Thread {
                number: 0,
                wakeups: 997,
                min_us: 33,
                mean_us: 85,
                max_us: 2921,
                max_at_us: None
            }
        );
    }

    #[test]
    fn the_lines_below_a_histogram_without_the_column_of_all() {
        let text = "T: 1 Spike:    1200: TS:   77\n\
            # Total: 000000969 000000978 000001947\n# Min Latencies: 00066 00023\n\
            # Avg Latencies: 00080 00084\n# Max Latencies: 00240 01200 01200\n\
            # Histogram Overflows: 00031 00018 00049\n";
        let threads = worst_first(text);
        let told: Vec<_> = threads
            .iter()
            .map(|t| (t.number, t.wakeups, t.min_us, t.max_us, t.max_at_us))
            .collect();
        assert_eq!(
            told,
            [(1, 996, 23, 1200, Some(77)), (0, 1000, 66, 240, None)]
        );
    }

    #[test]
    fn other_text_has_no_threads() {
        for text in [
            "",
            "T:",
            "T: x",
            "T: 5 Spike: 3: TS: 4",
            "# Max Latencies: ",
            "T: 99999999999 ( 1) C: 1 Min: 1 Avg: 1 Max: 1",
        ] {
            assert!(worst_first(text).is_empty(), "{text}");
        }
    }
}
