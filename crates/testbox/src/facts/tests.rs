use super::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

fn put(dir: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The least a machine must have.
fn minimal() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "/proc/sys/kernel/osrelease", "6.1.0-made-up\n");
    put(dir.path(), "/proc/meminfo", "MemTotal:       2048 kB\n");
    put(
        dir.path(),
        "/proc/self/status",
        "Name:\tx\nCpus_allowed_list:\t0-3,8\n",
    );
    dir
}

fn facts(dir: &Path) -> BoxFacts {
    read_facts(&SysRoot::at(dir), None).unwrap()
}

#[track_caller]
fn check(facts: &BoxFacts, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(
            facts.entries.get(*name).map(String::as_str),
            Some(*value),
            "{name}"
        );
    }
}

#[test]
fn a_minimal_machine_has_only_what_can_be_read() {
    let dir = minimal();
    let facts = facts(dir.path());
    assert_eq!(facts.testbox, "localhost");
    assert_eq!(facts.kernel_release, "6.1.0-made-up");
    assert_eq!(
        (facts.cpus, facts.memory_bytes, facts.numa_nodes),
        (5, 2 << 20, 1)
    );
    assert_eq!(facts.boot_id, None);
    let entries: Vec<_> = facts.entries.iter().collect();
    assert_eq!(entries, [(&"cpu.allowed".to_owned(), &"0-3,8".to_owned())]);
}

#[test]
fn what_every_plan_needs_is_an_error_when_absent() {
    for path in [
        "/proc/sys/kernel/osrelease",
        "/proc/meminfo",
        "/proc/self/status",
    ] {
        let dir = minimal();
        put(
            dir.path(),
            path,
            "\u{1}garbage:::\n".repeat(usize::from(!path.ends_with("osrelease"))),
        );
        let error = read_facts(&SysRoot::at(dir.path()), None).unwrap_err();
        assert_eq!(error.path, Some(SysRoot::at(dir.path()).path(path)));
        assert!(error.hint.is_some());
    }
}

#[test]
fn names() {
    let dir = minimal();
    put(dir.path(), "/proc/sys/kernel/hostname", "vhost7\n");
    put(dir.path(), "/proc/sys/kernel/random/boot_id", "a-b-c\n");
    assert_eq!(facts(dir.path()).testbox, "vhost7");
    assert_eq!(facts(dir.path()).boot_id, Some(BootId::from("a-b-c")));
    let named = read_facts(&SysRoot::at(dir.path()), Some("knm01")).unwrap();
    assert_eq!(named.testbox, "knm01");
}

#[test]
fn processors() {
    let dir = minimal();
    let root = dir.path();
    put(
        root,
        "/proc/cpuinfo",
        "processor : 0\nmodel name\t: Fast 9000\nmicrocode : 0x1f\nflags : fpu hypervisor sse\n",
    );
    for (cpu, siblings, package) in [(0, "0,2", 0), (2, "0,2", 0), (1, "1,3", 1), (3, "1,3", 1)] {
        let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
        put(root, &format!("{topology}/thread_siblings_list"), siblings);
        put(
            root,
            &format!("{topology}/physical_package_id"),
            package.to_string(),
        );
        let policy = format!("/sys/devices/system/cpu/cpufreq/policy{cpu}");
        put(
            root,
            &format!("{policy}/scaling_governor"),
            if cpu == 3 {
                "powersave\n"
            } else {
                "performance\n"
            },
        );
        put(
            root,
            &format!("{policy}/scaling_cur_freq"),
            format!("{}", 1_000_000 + cpu),
        );
    }
    put(root, "/sys/devices/system/cpu/cpu7/online", "0");
    put(
        root,
        "/sys/devices/system/cpu/cpu0/cpuidle/state0/name",
        "POLL",
    );
    put(
        root,
        "/sys/devices/system/cpu/cpu0/cpuidle/state1/name",
        "C1",
    );
    put(
        root,
        "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable",
        "1",
    );
    put(
        root,
        "/sys/devices/system/cpu/vulnerabilities/meltdown",
        "Not affected\n",
    );
    for (cpu, kind, count) in [(0, "core", "2"), (1, "core", "0"), (1, "package", "3")] {
        let path =
            format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{kind}_throttle_count");
        put(root, &path, format!("{count}\n"));
    }
    check(
        &facts(root),
        &[
            ("cpu.model", "Fast 9000"),
            ("cpu.microcode", "0x1f"),
            ("virt.hypervisor_flag", "yes"),
            ("cpu.sockets", "2"),
            ("cpu.cores", "2"),
            ("cpu.threads", "4"),
            ("cpu.governor", "performance,powersave"),
            ("now.cpu.frequency_khz", "1000000-1000003"),
            ("now.cpu.throttle_events", "5"),
            ("cpu.idle.states", "POLL,C1(off)"),
            ("cpu.vulnerability.meltdown", "Not affected"),
        ],
    );
    put(
        root,
        "/proc/cpuinfo",
        "CPU implementer : 0x41\nCPU part : 0xd0c\n",
    );
    check(
        &facts(root),
        &[("cpu.model", "implementer 0x41 part 0xd0c")],
    );
}

#[test]
fn the_configuration_is_hashed_as_text() {
    let dir = minimal();
    let text = b"CONFIG_SMP=y\n";
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text).unwrap();
    let packed = packer.finish().unwrap();
    let hash = |dir: &Path| facts(dir).entries.get("kernel.config_sha256").cloned();

    put(dir.path(), "/proc/config.gz", &packed);
    let own = hash(dir.path()).unwrap();
    // sha256sum of the text.
    assert_eq!(
        own,
        "a384e9448a2fdde1dee37eb5da09dada1708d7b64fb8f347a3f2a1fbc1d940be"
    );

    put(dir.path(), "/proc/config.gz", &packed[..packed.len() - 6]);
    assert_eq!(hash(dir.path()), None, "cut short");
    put(dir.path(), "/boot/config-6.1.0-made-up", text);
    assert_eq!(hash(dir.path()), Some(own));
}

#[test]
fn kernel_and_memory() {
    let dir = minimal();
    let root = dir.path();
    put(
        root,
        "/proc/modules",
        "zram 1 0 - Live 0x0\next4 2 1 - Live 0x0\n",
    );
    put(root, "/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    put(
        root,
        "/sys/kernel/debug/sched/features",
        "GENTLE NO_HRTICK\n",
    );
    put(root, "/proc/loadavg", "0.10 0.20 0.30 1/90 777\n");
    put(root, "/proc/uptime", "12.34 20.00\n");
    put(
        root,
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    );
    put(
        root,
        "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "12\n",
    );
    put(
        root,
        "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
        "3\n",
    );
    put(
        root,
        "/proc/swaps",
        "Filename Type Size Used Priority\n/dev/sda2 partition 4096 17 -2\n",
    );
    put(root, "/sys/block/zram0/disksize", "0\n");
    put(root, "/sys/block/zram1/disksize", "4096\n");
    put(root, "/sys/devices/system/node/online", "0-1\n");
    let facts = facts(root);
    assert_eq!(facts.numa_nodes, 2);
    assert!(!facts.entries.contains_key("memory.zram.zram0_bytes"));
    check(
        &facts,
        &[
            ("kernel.modules.count", "2"),
            ("kernel.modules.names", "ext4 zram"),
            ("sched.rt_runtime_us", "950000"),
            ("sched.features", "GENTLE NO_HRTICK"),
            ("now.load_average", "0.10 0.20 0.30"),
            ("now.uptime_s", "12.34"),
            ("memory.thp.enabled", "madvise"),
            ("memory.hugepages.2048kB.total", "12"),
            ("now.memory.hugepages.2048kB.free", "3"),
            ("memory.swaps", "/dev/sda2 partition 4096 kB"),
            ("memory.zram.zram1_bytes", "4096"),
        ],
    );
    put(root, "/proc/swaps", "Filename Type Size Used Priority\n");
    put(root, "/proc/modules", "");
    check(
        &self::facts(root),
        &[("memory.swaps", "none"), ("kernel.modules.count", "0")],
    );
}

#[test]
fn file_systems_containers_and_cgroups() {
    let dir = minimal();
    let root = dir.path();
    put(
        root,
        "/proc/self/mounts",
        "proc /proc proc rw 0 0\n/dev/vda / ext4 rw,noatime 0 0\n/dev/loop3 /snap/x squashfs ro 0 0\n\
         overlay /merged overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d,xino=off 0 0\n\
         tmpfs /tmp tmpfs rw,size=9k 0 0\nbroken line\n",
    );
    fs::create_dir_all(root.join("proc/self")).unwrap();
    symlink("/tmp/work", root.join("proc/self/cwd")).unwrap();
    put(root, "/proc/self/environ", "A=1\0HOME=/tmpfoo\0");
    put(root, "/run/.containerenv", "");
    put(
        root,
        "/proc/cgroups",
        "#subsys_name hierarchy num_cgroups enabled\ncpu 1 2 1\nmemory 4 2 0\nio 4 2 1\n",
    );
    let v1 = facts(root);
    check(
        &v1,
        &[
            ("filesystem./", "ext4 rw,noatime"),
            ("filesystem./merged", "overlay rw,xino=off"),
            ("filesystem.cwd", "/tmp tmpfs rw,size=9k"),
            ("filesystem.home", "/ ext4 rw,noatime"),
            ("virt.container", "podman"),
            ("cgroup.version", "1"),
            ("cgroup.controllers", "cpu io"),
        ],
    );
    let count = v1
        .entries
        .keys()
        .filter(|k| k.starts_with("filesystem."))
        .count();
    assert_eq!(count, 4, "{:?}", v1.entries);
    put(root, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
    check(
        &facts(root),
        &[
            ("cgroup.version", "2"),
            ("cgroup.controllers", "cpuset cpu io"),
        ],
    );
}

#[test]
fn lists() {
    assert_eq!(list_length("0"), Some(1));
    assert_eq!(list_length("0-3,8,10-11\n"), Some(7));
    for odd in ["", "3-1", "a", "0-", "0-4294967295", "0-4294967294,0-9"] {
        assert_eq!(list_length(odd), None, "{odd}");
    }
}

#[test]
fn garbage_everywhere_ends_without_panic() {
    let dir = minimal();
    let garbage: Vec<u8> = (0..4096u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for path in [
        "/proc/cpuinfo",
        "/proc/config.gz",
        "/proc/modules",
        "/proc/swaps",
        "/proc/self/mounts",
        "/proc/self/environ",
        "/proc/self/cgroup",
        "/proc/cgroups",
        "/proc/loadavg",
        "/sys/devices/system/node/online",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        put(dir.path(), path, &garbage);
    }
    assert_eq!(facts(dir.path()).numa_nodes, 1);
}

#[test]
fn this_machine() {
    let root = SysRoot::real();
    let facts = read_facts(&root, None).unwrap();
    assert!(facts.cpus >= 1 && facts.numa_nodes >= 1);
    assert!(facts.memory_bytes > 1 << 20);
    check(
        &facts,
        &[("kernel.cmdline", &root.line("/proc/cmdline").unwrap())],
    );
    assert!(facts.entries.values().all(|value| !value.is_empty()));
    let again = read_facts(&root, None).unwrap();
    // Tests that run meanwhile may change settings, but not these.
    let steady = |facts: BoxFacts| -> Vec<(String, String)> {
        let entries = facts.entries.into_iter();
        let kept =
            entries.filter(|(name, _)| name.starts_with("kernel.") || name.starts_with("virt."));
        kept.collect()
    };
    assert_eq!(steady(facts), steady(again));
}

#[test]
fn root_the_real_kernel_log_opens_at_its_end() {
    let Some(mut log) = KernelLog::open(&SysRoot::real()) else {
        eprintln!("skipped: the kernel log may not be read");
        return;
    };
    let before = log.new_warnings();
    assert!(
        before.len() < 50,
        "the log from before was read: {before:?}"
    );
}
