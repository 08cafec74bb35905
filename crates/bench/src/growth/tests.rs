use super::*;

/// Returns curves whose costs are known: 20 KB per conversation on top of 2 MiB.
pub(crate) fn growth() -> Growth {
    let point = |items: u64| Point {
        items,
        make_seconds: 0.1,
        rss_bytes: (40 << 20) + (2 << 20) + 20_000 * items,
        rates: vec![40_000.0, 60_000.0],
        cpu_us: vec![items as f64, 3.0 * items as f64],
        flags: match items {
            100 => vec![Flag::Unstable, Flag::NoisyHost],
            _ => Vec::new(),
        },
    };
    let log = |gigabytes: u64| LogPoint {
        bytes: gigabytes * GIGABYTE,
        cpu_us: 7.0,
        start_ms: 100.0 * gigabytes as f64,
        read_begin_ms: 1.5,
        read_end_ms: 0.5,
        compaction_ms: (gigabytes > 1).then_some(900.0),
        rss_bytes: 50 << 20,
        disk_bytes: 2 * gigabytes * GIGABYTE,
        flags: Vec::new(),
    };
    Growth {
        environment: Environment::default(),
        empty_rss_bytes: 40 << 20,
        in_flight: 128,
        curves: vec![Curve {
            of: Dimension::Conversations,
            points: [1, 10, 100, 1_000].map(point).to_vec(),
        }],
        log: [1, 2, 5].map(log).to_vec(),
        left_out: vec![LeftOut {
            of: Dimension::Log,
            step: 20,
            reason: "30 GB free".to_owned(),
        }],
    }
}

#[test]
fn growth_tables_compare_the_last_step_with_the_first() {
    let growth = growth();
    let items = growth.items_table().markdown();
    assert_eq!(
        [size(512.0), size(2.1e3), size(2e10)],
        ["512 B", "2.1 KB", "20 GB"]
    );
    let row =
        "| 1 to 1,000 conversations | 22.1 KB | 2000 µs | 1000 × | 1.0 × | unstable, noisy-host |";
    assert!(items.contains(row), "{items}");
    let log = growth.log_table().markdown();
    assert!(log.contains("| 5.0 × | 1.0 × | 1.0 × |"), "{log}");
    assert_eq!(
        growth.left_out_list(),
        "Left out:\n\n- 20 GB of log: 30 GB free\n"
    );
    assert_eq!(
        growth.flagged(),
        ["conversations 100: unstable, noisy-host"]
    );
    let page = growth.markdown();
    assert!(
        page.contains("| items |") && page.contains("Left out:"),
        "{page}"
    );
}

#[test]
fn memory_growth_below_the_noise_is_no_figure() {
    let mut point = growth().curves[0].points[0].clone();
    assert_eq!(
        point.bytes_each(40 << 20),
        Some(f64::from(2 << 20) + 20_000.0)
    );
    point.rss_bytes = (40 << 20) + 1_000;
    assert_eq!(point.bytes_each(40 << 20), None);
    assert_eq!(point.bytes_each(41 << 20), None);
}

#[test]
fn growth_reads_back_as_it_was_written() {
    let text = serde_json::to_string(&growth()).unwrap();
    let read = Growth::from_json(text.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn growth_pictures_are_complete() {
    let pictures = growth().pictures();
    let files: Vec<_> = pictures.iter().map(|one| one.file.as_str()).collect();
    assert_eq!(
        files,
        [
            "growth-cpu.svg",
            "growth-memory.svg",
            "growth-rate.svg",
            "growth-log.svg"
        ]
    );
    for Picture { svg, file, .. } in &pictures {
        assert!(
            svg.contains("<polyline ") && svg.contains("<text "),
            "{file}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{file}");
    }
    let mut empty = growth();
    empty.curves.clear();
    empty.log.clear();
    assert!(empty.pictures().is_empty());
}
