use super::*;

#[test]
fn memory_is_parsed_from_proc_status() {
    let status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t     300 kB\nVmRSS:\t     200 kB\n";
    let memory = Memory {
        rss_bytes: 200 * 1024,
        rss_peak_bytes: 300 * 1024,
    };
    assert_eq!(Memory::parse(status), Some(memory));
    assert_eq!(Memory::parse("Name:\tkthread\n"), None);
    let own = Memory::of(std::process::id()).unwrap();
    assert!(own.rss_bytes > 0 && own.rss_bytes <= own.rss_peak_bytes);
}

#[test]
fn a_watch_sees_the_work_done_inside_it() {
    let watch = Watch::start(&[(Role::Sender, std::process::id())]).unwrap();
    let begin = clock::own_cpu_ns();
    while clock::own_cpu_ns() < begin + 5_000_000 {}
    let usage = watch.stop();
    let sender = &usage.roles[0];
    assert!(sender.cpu_ns.unwrap() >= 5_000_000);
    assert!(sender.wall_ns > 0 && sender.rss_peak_bytes.unwrap() > 0);
}

#[test]
fn several_nodes_are_numbered_and_a_dead_one_is_refused() {
    let own = std::process::id();
    let usage = Watch::start(&[(Role::Node, own), (Role::Sender, own), (Role::Node, own)])
        .unwrap()
        .stop();
    let names: Vec<_> = usage.roles.iter().map(|role| role.name.as_str()).collect();
    assert_eq!(names, ["node-1", "sender", "node-2"]);
    let error = Watch::start(&[(Role::Node, u32::MAX >> 1)])
        .unwrap_err()
        .to_string();
    assert!(error.contains("node, process 2147483647"), "{error}");
}

#[test]
fn a_size_is_found_by_its_whole_name() {
    let text = "MemTotal:       24684420 kB\nMemFree:          312332 kB\n";
    assert_eq!(proc_size(text, "MemFree"), Some(312_332 * 1024));
    assert_eq!(proc_size(text, "Mem"), None);
    assert_eq!(proc_size(text, "Cached"), None);
}
