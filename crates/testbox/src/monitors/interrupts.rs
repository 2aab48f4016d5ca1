//! `/proc/interrupts`: interrupts by source, summed over CPUs.
//!
//! Which CPU was hit is not kept: it would make as many columns as the machine has CPUs for each
//! source. A numbered line is named after its device, as numbers differ from boot to boot.

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct Interrupts;

/// Enough to tell devices apart, short enough for a table.
const MAX_NAME: usize = 48;

impl Source for Interrupts {
    fn name(&self) -> &'static str {
        "interrupts"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        let header = scan.line();
        let cpus = header
            .split(|&b| b == b' ')
            .filter(|w| !w.is_empty())
            .count();
        while !scan.is_empty() {
            let label = scan.until(b':');
            let mut sum = scan.number();
            for _ in 1..cpus {
                let Some(count) = scan.number() else { break };
                sum = sum.map(|sum| sum.saturating_add(count));
            }
            let device = scan.line();
            if let (Some(label), Some(sum)) = (label, sum)
                && let Some(mut cells) = table.cells(label, device, 1)
            {
                cells.push(Some(sum));
            }
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let label = String::from_utf8_lossy(&line.key);
        let name = if label.bytes().all(|b| b.is_ascii_digit()) {
            device_name(&String::from_utf8_lossy(&line.detail)).unwrap_or(format!("irq{label}"))
        } else {
            metric_part(&label)
        };
        vec![Spec::counter(name, "")]
    }
}

/// The device of a line such as `IO-APIC 4-edge ttyS0`: its last word, and those before it that
/// a comma joins to it. `None` when nobody has asked for the interrupt.
fn device_name(text: &str) -> Option<String> {
    let mut device = String::new();
    for word in text.split_whitespace().rev() {
        if !device.is_empty() && !word.ends_with(',') {
            break;
        }
        device.insert_str(0, word);
    }
    let trigger = device.rsplit('-').next().unwrap_or_default();
    let is_trigger = ["edge", "level", "fasteoi", "Edge", "Level"].contains(&trigger);
    (!is_trigger && !device.is_empty()).then(|| metric_part(&device))
}

/// A text fit for a metric's name: bounded, and without what a table or a shell would trip over.
fn metric_part(text: &str) -> String {
    text.chars()
        .take(MAX_NAME)
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | ':' | '-' | '@' => c,
            ',' => '+',
            _ => '_',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices() {
        let name = |text| device_name(text);
        assert_eq!(
            name("IO-APIC   4-edge      ttyS0").as_deref(),
            Some("ttyS0")
        );
        assert_eq!(
            name("IO-APIC 16-fasteoi i801_smbus, ehci_hcd:usb1").as_deref(),
            Some("i801_smbus+ehci_hcd:usb1")
        );
        assert_eq!(
            name("GICv3  27 Level     arch_timer").as_deref(),
            Some("arch_timer")
        );
        assert_eq!(
            name("PCI-MSI 7-edge ahci[0000:00:17.0]").as_deref(),
            Some("ahci_0000:00:17.0_")
        );
        assert_eq!(name("IO-APIC   2-edge"), None);
        assert_eq!(name("  "), None);
        assert_eq!(name(&"x".repeat(500)).map(|n| n.len()), Some(MAX_NAME));
    }
}
