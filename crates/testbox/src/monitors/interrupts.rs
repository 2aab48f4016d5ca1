//! `/proc/interrupts`: interrupts by source, summed over CPUs.
//!
//! Which CPU was hit is kept only when each is asked for: it makes as many columns as the machine has
//! CPUs for each source. A numbered line is named after its device, as numbers differ from boot to boot.

use super::per_cpu::{self, cpu_names};
use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

pub(super) struct Interrupts {
    /// A column for each CPU.
    pub each: bool,
}

/// Between a device and the header that names the CPUs of its counts.
const HEADER_BEHIND: &[u8] = b"\n";

/// Enough to tell devices apart, short enough for a table.
const MAX_NAME: usize = 48;

impl Source for Interrupts {
    fn name(&self) -> &'static str {
        "interrupts"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        let header = scan.line();
        let cpus = per_cpu::cpus(header);
        while !scan.is_empty() {
            let label = scan.until(b':');
            let counts: Vec<u64> = match self.each {
                true => (0..cpus).map_while(|_| scan.number()).collect(),
                false => per_cpu::sum(&mut scan, cpus).into_iter().collect(),
            };
            let device = scan.line();
            let Some(label) = label.filter(|_| !counts.is_empty()) else {
                continue;
            };
            let detail = match self.each {
                true => &[device, HEADER_BEHIND, header].concat(),
                false => device,
            };
            if let Some(mut cells) = table.cells(label, detail, counts.len())
                && cells.len() == counts.len()
            {
                counts.into_iter().for_each(|count| cells.push(Some(count)));
            }
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let label = String::from_utf8_lossy(&line.key);
        let end = line.detail.iter().position(|b| *b == HEADER_BEHIND[0]);
        let (device, header) = line.detail.split_at(end.unwrap_or(line.detail.len()));
        let name = if label.bytes().all(|b| b.is_ascii_digit()) {
            device_name(&String::from_utf8_lossy(device)).unwrap_or(format!("irq{label}"))
        } else {
            metric_part(&label)
        };
        // ERR and MIS have one count for all CPUs.
        let cpus: Vec<String> = cpu_names(header.get(1..).unwrap_or_default()).collect();
        if cpus.len() != line.width() {
            return vec![Spec::counter(name, "")];
        }
        let of_cpu = |cpu: &String| Spec::counter(format!("{name}.{cpu}"), "");
        cpus.iter().map(of_cpu).collect()
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
