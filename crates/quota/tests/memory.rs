//! The memory used by a million buckets.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use quota::{
    Bucket, Decision, Durability, Factor, Kind, Limit, Mode, Pattern, Plan, Policies, Rules, Seed,
    Subject, Table, Unit, Unreachable, decide,
};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator, whose promises these are.
#[expect(unsafe_code, reason = "an allocator that counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: see above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: see above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BUCKETS: usize = 1_000_000;

#[test]
fn a_million_buckets_take_at_most_110_bytes_each_and_their_keys() {
    let seed = Seed(3);
    let limit = Limit {
        name: "agent".into(),
        pattern: Pattern::parse("*/*/*").unwrap(),
        unit: Unit::REQUESTS,
        kind: Kind::Bucket(Bucket {
            capacity: 100,
            amount: 10,
            period_ns: 1_000_000_000,
        }),
        mode: Mode::Enforce,
        durability: Durability::Async,
        factor: Factor::ONE,
        weight: 1,
        warn: Vec::new(),
        on_unreachable: Unreachable::Degrade,
    };
    let policies = Policies::default().next(vec![limit]).unwrap();
    let rules = Rules::new(seed, 64).with_policies(policies, 0);
    let mut tables: Vec<Table> = (0..64).map(|_| Table::new(seed, BUCKETS)).collect();
    let mut plan = Plan::default();
    let (mut keys, mut worst) = (0, 0.0_f64);
    let before = LIVE.load(Ordering::Relaxed);
    for n in 0..BUCKETS {
        let name = format!("default/default/agent-{n}");
        let subject = Subject::parse(&name).unwrap();
        rules
            .plan(&mut plan, &subject, &[(Unit::REQUESTS, 1)])
            .unwrap();
        let table = usize::from(plan.tables()[0]);
        let mut locked = [&mut tables[table]];
        let decided = decide(&rules, &mut plan, &subject, &mut locked, 1);
        assert_eq!(decided, Decision::Admitted);
        keys += name.len();
        tables[table].clean();
        if n >= 100_000 && n % 1_000 == 0 {
            let live = LIVE.load(Ordering::Relaxed) - before - keys - name.capacity();
            worst = worst.max(live as f64 / (n + 1) as f64);
        }
    }
    println!("at worst {worst:.1} bytes per bucket beside its key");
    assert!(worst <= 110.0, "{worst:.1} bytes per bucket");
}
