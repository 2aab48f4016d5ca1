//! Processors: power, heat, frequency, siblings, hypervisor.

use super::{Finding, Level, Sight};

const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";

pub(super) fn governor(sight: &Sight<'_>) -> Option<Finding> {
    let governors = sight.fact("cpu.governor")?;
    let driver = sight
        .fact("cpu.frequency.driver")
        .unwrap_or("unknown driver");
    let level = if governors == "performance" {
        Level::Ok
    } else {
        Level::Warning
    };
    let policy = sight
        .places
        .root
        .names(CPUFREQ)
        .into_iter()
        .find(|name| name.starts_with("policy"))?;
    let what = format!("frequency governor {governors} ({driver})");
    let why = "the frequency follows the load, so that short runs are slow and times vary";
    Some(
        Finding::new("governor", level, what, why)
            .hint("set it to performance for every policy: cpupower frequency-set -g performance")
            .setting(format!(
                "sysfs.{CPUFREQ}/{policy}/scaling_governor=performance"
            )),
    )
}

pub(super) fn boost(sight: &Sight<'_>) -> Option<Finding> {
    let no_turbo = sight.fact("cpu.no_turbo");
    let on = match no_turbo {
        Some(off) => off == "0",
        None => sight.fact("cpu.boost")? == "1",
    };
    let setting = match no_turbo {
        Some(_) => "sysfs./sys/devices/system/cpu/intel_pstate/no_turbo=1".to_owned(),
        None => format!("sysfs.{CPUFREQ}/boost=0"),
    };
    let (level, word) = if on {
        (Level::Note, "on")
    } else {
        (Level::Ok, "off")
    };
    let why = "the frequency depends on heat and on how many cores are busy";
    Some(
        Finding::new("boost", level, format!("turbo is {word}"), why)
            .hint("switch it off where a few percent matter")
            .setting(setting),
    )
}

pub(super) fn smt(sight: &Sight<'_>) -> Option<Finding> {
    let on = sight.fact("cpu.smt.active")? == "1";
    let (level, what) = if on {
        (Level::Note, "SMT is on: CPUs share cores")
    } else {
        (Level::Ok, "SMT is off")
    };
    let why = "a task is slower when its core's other CPU is busy, and which is which is chance";
    Some(
        Finding::new("smt", level, what, why)
            .hint("bind tasks with `affinity`, or switch it off")
            .setting("sysfs./sys/devices/system/cpu/smt/control=off"),
    )
}

pub(super) fn virtual_machine(sight: &Sight<'_>) -> Option<Finding> {
    let flag = sight.fact("virt.hypervisor_flag");
    let kind = sight.fact("virt.hypervisor");
    let container = sight.fact("virt.container");
    let why = "host and neighbours share CPUs, caches and disks with it";
    let maker: Vec<&str> = ["machine.vendor", "machine.product"]
        .iter()
        .filter_map(|name| sight.fact(name))
        .collect();
    let what = match (flag == Some("yes") || kind.is_some(), container) {
        (true, _) => match kind.map(str::to_owned).or_else(|| joined(&maker)) {
            Some(name) => format!("a virtual machine ({name})"),
            None => "a virtual machine".to_owned(),
        },
        (false, Some(container)) => format!("a container ({container})"),
        (false, None) => {
            flag?;
            return Some(Finding::new(
                "virtual",
                Level::Ok,
                "no virtual machine",
                why,
            ));
        }
    };
    let hint = "compare within one boot, in blocks, and with more runs; pin its CPUs on the host";
    Some(Finding::new("virtual", Level::Note, what, why).hint(hint))
}

fn joined(words: &[&str]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}

const SUPPLIES: &str = "/sys/class/power_supply";

pub(super) fn power(sight: &Sight<'_>) -> Option<Finding> {
    let supplies = sight.places.root.names(SUPPLIES);
    let of = |supply: &String, file: &str| sight.line(&format!("{SUPPLIES}/{supply}/{file}"));
    let is_system = |supply: &&String| of(supply, "scope").as_deref() != Some("Device");
    let batteries: Vec<&String> = supplies
        .iter()
        .filter(|supply| of(supply, "type").as_deref() == Some("Battery"))
        .filter(is_system)
        .collect();
    if batteries.is_empty() {
        return None;
    }
    let drains = |supply: &&String| of(supply, "status").as_deref() == Some("Discharging");
    let (level, what) = if batteries.iter().any(drains) {
        (Level::Warning, "runs on its battery")
    } else {
        (Level::Ok, "does not run on its battery")
    };
    let why = "firmware lowers frequency and power on battery, by its charge";
    Some(Finding::new("power", level, what, why).hint("plug it in"))
}

pub(super) fn throttling(sight: &Sight<'_>) -> Option<Finding> {
    let (before, now) = (sight.before.throttle_events?, sight.after.throttle_events?);
    let why = "a CPU that is too hot slows itself down";
    let (level, what) = match now {
        0 => (
            Level::Ok,
            "no CPU has slowed down for heat since boot".to_owned(),
        ),
        _ if now > before => (Level::Warning, "a CPU slows down for heat now".to_owned()),
        _ => {
            let what = format!("CPUs have slowed down for heat {now} times since boot");
            (Level::Note, what)
        }
    };
    let hint = "cool it, or switch turbo off; `kdyno show --facts` tells whether it grew in a run";
    Some(Finding::new("throttling", level, what, why).hint(hint))
}

const ZONES: &str = "/sys/class/thermal";
/// Hot where a zone names no limit, in thousandths of a degree Celsius.
const HOT: i64 = 90_000;
/// So close to a limit is hot.
const NEAR: i64 = 5_000;

pub(super) fn temperature(sight: &Sight<'_>) -> Option<Finding> {
    let zones = sight.places.root.names(ZONES).into_iter();
    let read = zones
        .filter(|name| name.starts_with("thermal_zone"))
        .filter_map(|zone| {
            let now: i64 = sight.line(&format!("{ZONES}/{zone}/temp"))?.parse().ok()?;
            let kind = sight.line(&format!("{ZONES}/{zone}/type"));
            let name = kind.unwrap_or_else(|| zone.clone());
            Some((now - limit(sight, &zone).unwrap_or(HOT), now, name))
        });
    // The one that is closest to its limit.
    let (above, now, name) = read.max()?;
    let level = if above >= -NEAR {
        Level::Warning
    } else {
        Level::Ok
    };
    let what = format!("{name} is at {} degrees Celsius", now / 1000);
    let why = "a CPU that is too hot slows itself down";
    Some(Finding::new("temperature", level, what, why).hint("let it cool down"))
}

/// The lowest temperature at which a zone does something, in thousandths of a degree.
fn limit(sight: &Sight<'_>, zone: &str) -> Option<i64> {
    let files = sight.places.root.names(format!("{ZONES}/{zone}"));
    let limits = files.iter().filter_map(|file| {
        let point = file.strip_suffix("_type")?;
        point.strip_prefix("trip_point_")?;
        let kind = sight.line(&format!("{ZONES}/{zone}/{file}"))?;
        ["passive", "hot", "critical"]
            .contains(&kind.as_str())
            .then_some(())?;
        let limit: i64 = sight
            .line(&format!("{ZONES}/{zone}/{point}_temp"))?
            .parse()
            .ok()?;
        (limit > 0).then_some(limit)
    });
    limits.min()
}
