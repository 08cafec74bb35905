use super::*;

#[test]
fn eight_threads_on_one_bucket_are_admitted_exactly_its_capacity() {
    let org = LimitConfig {
        pattern: "*".to_owned(),
        ..bucket("org", 4_000, "0/s")
    };
    let world = world(&[bucket("agent", 1_000, "0/s"), org]);
    let node = &world.node;
    let admitted: usize = std::thread::scope(|scope| {
        let threads = [(); 8].map(|()| {
            scope.spawn(|| {
                // One busy agent, and five others that share the organisation with it.
                let takes = (0..3_000).filter(|n| {
                    let agent = if n % 2 == 0 { 0 } else { n % 5 + 1 };
                    is_admitted(node, &format!("acme/b/{agent}"))
                });
                takes.count()
            })
        });
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(admitted, 4_000);
    assert_eq!(remaining(node, "acme/b/0"), [0, 0]);
}

#[test]
fn top_lists_the_most_denied_and_most_used_subjects() {
    let world = world(&[bucket("agent", 10, "0/s")]);
    for (agent, count) in [("a", 15), ("b", 12), ("c", 3)] {
        for _ in 0..count {
            is_admitted(&world.node, &format!("x/y/{agent}"));
        }
    }
    let top = |by, count| {
        let rows = world.node.quotas().top(by, count);
        rows.into_iter()
            .map(|row| (row.name.to_string(), row.count))
            .collect::<Vec<_>>()
    };
    let row = |name: &str, count| (name.to_owned(), count);
    assert_eq!(
        top(crate::TopBy::Denied, 5),
        [row("x/y/a", 5), row("x/y/b", 2)]
    );
    assert_eq!(top(crate::TopBy::Taken, 9).last(), Some(&row("x/y/c", 3)));
    assert_eq!(top(crate::TopBy::Taken, 2).len(), 2);
    assert_eq!(top(crate::TopBy::Debt, 5), []);
}
