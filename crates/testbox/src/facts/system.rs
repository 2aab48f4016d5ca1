//! What lies around the kernel: firmware, hypervisor, container, file systems, cgroups.

use super::Found;
use crate::root::SysRoot;
use std::path::Path;

pub(super) fn read(found: &mut Found<'_>) {
    found.lines(&[
        ("machine.vendor", "/sys/class/dmi/id/sys_vendor"),
        ("machine.product", "/sys/class/dmi/id/product_name"),
        ("machine.bios_version", "/sys/class/dmi/id/bios_version"),
        ("virt.hypervisor", "/sys/hypervisor/type"),
    ]);
    found.put("user.id", effective_user(found.root));
    found.put("virt.container", container(found.root));
    cgroups(found);
    file_systems(found);
}

/// The second number of `Uid:` in proc(5).
fn effective_user(root: &SysRoot) -> Option<String> {
    let status = root.read("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}

/// By which container runtime this process seems to be run; the marks are conventions, so their
/// absence proves nothing.
fn container(root: &SysRoot) -> Option<String> {
    if let Some(name) = root.line("/run/systemd/container") {
        return Some(name);
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    if let Some((_, name)) = marks.iter().find(|(path, _)| root.path(path).exists()) {
        return Some((*name).to_owned());
    }
    let cgroup = root.read("/proc/self/cgroup").ok()?;
    let names = ["kubepods", "docker", "containerd", "lxc"];
    let name = names.into_iter().find(|name| cgroup.contains(name))?;
    Some(name.to_owned())
}

fn cgroups(found: &mut Found<'_>) {
    let root = found.root;
    let unified = "/sys/fs/cgroup/cgroup.controllers";
    if root.path(unified).exists() {
        found.put("cgroup.version", Some("2"));
        found.line("cgroup.controllers", unified);
        return;
    }
    let Ok(text) = root.read("/proc/cgroups") else {
        return;
    };
    let hybrid = root.path("/sys/fs/cgroup/unified").exists();
    found.put("cgroup.version", Some(if hybrid { "1+2" } else { "1" }));
    let enabled = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|name| !name.starts_with('#'))?;
        (words.last()? == "1").then(|| name.to_owned())
    };
    let controllers: Vec<String> = text.lines().filter_map(enabled).collect();
    found.put("cgroup.controllers", Some(controllers.join(" ")));
}

/// One line of `/proc/self/mounts`.
struct Mount<'a> {
    source: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        Some(Self {
            source: words.next()?,
            point: words.next()?,
            kind: words.next()?,
            options: words.next()?,
        })
    }

    /// Whether it keeps data on a device of its own or on top of one that does.
    fn holds_data(&self) -> bool {
        let device = self.source.starts_with("/dev/") && !self.source.starts_with("/dev/loop");
        device || ["overlay", "zfs"].contains(&self.kind)
    }

    /// Type and options, without the directories of an overlay: they are names, not settings.
    fn describe(&self) -> String {
        let options: Vec<&str> = self
            .options
            .split(',')
            .filter(|option| {
                !option
                    .split('=')
                    .next()
                    .unwrap_or_default()
                    .ends_with("dir")
            })
            .collect();
        format!("{} {}", self.kind, options.join(","))
    }
}

fn file_systems(found: &mut Found<'_>) {
    let root = found.root;
    let Ok(text) = root.read("/proc/self/mounts") else {
        return;
    };
    let mounts: Vec<Mount<'_>> = text.lines().filter_map(Mount::parse).collect();
    for mount in mounts.iter().filter(|mount| mount.holds_data()) {
        let name = format!("filesystem.{}", mount.point);
        found.put(name, Some(mount.describe()));
    }
    let directory = std::fs::read_link(root.path("/proc/self/cwd")).ok();
    let environment = root.read("/proc/self/environ").unwrap_or_default();
    let home = environment
        .split('\0')
        .find_map(|entry| entry.strip_prefix("HOME="));
    for (name, path) in [("cwd", directory.as_deref()), ("home", home.map(Path::new))] {
        // Among equals the last one mounted hides the others, and `max_by_key` takes the last.
        let mount = path.and_then(|path| {
            let above = mounts.iter().filter(|mount| path.starts_with(mount.point));
            above.max_by_key(|mount| mount.point.len())
        });
        let text = mount.map(|mount| format!("{} {}", mount.point, mount.describe()));
        found.put(format!("filesystem.{name}"), text);
    }
}
