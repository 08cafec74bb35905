use super::*;
use crate::disk::simulated::Fault;
use crate::extent::Identity;

/// Payload sizes, and whether segments have no summary: with the first size they are copied, with the
/// other retained.
const CASES: [(usize, bool); 3] = [(40, false), (5_000, false), (5_000, true)];

/// Options with which segments of long records are retained.
const RETAINING: Options = Options {
    piece_size_min: 1_000,
    ..OPTIONS
};

/// Appends, trims, erases, files and merges; the same with every seed.
fn workload(
    world: &mut World,
    (size, has_no_summaries): (usize, bool),
    check: &mut dyn FnMut(&World),
) {
    world.line.state.lock().has_no_summaries = has_no_summaries;
    for round in 0..18_u64 {
        for stream in 0..4 {
            world.append((stream % 2) as u16, stream, &vec![round as u8; size]);
        }
        if round % 3 == 2 {
            world.trim(0, 0, round - 1);
        }
        if round == 9 {
            world.erase(1, 1);
        }
        world.line.roll();
        for _ in 0..8 {
            world.filer.step(&world.line, world.now_ms);
            check(world);
        }
        world.now_ms += HOUR_MS / 4;
    }
}

/// Checks that everything before the manifest's `filed` is in extents, exactly.
fn check_after(disk: Arc<SimulatedDisk>, before: &Models, filed: u64) {
    let manifest = Manifest::load(&*disk).unwrap().unwrap();
    assert!(
        manifest.filed.0 >= filed,
        "the workload must file and recycle segments"
    );
    let world = World::open(disk, Models::new(), RETAINING);
    for (stream, model) in read_all(world.filer.extents()) {
        let expected = &before[&stream];
        assert!(model.next <= expected.next && model.start <= expected.start);
        for offset in model.start..model.next {
            let payload = model.records.get(&offset);
            assert!(
                payload.is_some() || offset < expected.start,
                "{stream:?} lost {offset}"
            );
            if let (Some(payload), Some(expected)) = (payload, expected.records.get(&offset)) {
                assert_eq!(payload, expected);
            }
        }
    }
    let named: Vec<_> = manifest.extents().flatten().map(Identity::path).collect();
    let files = world.disk.files().into_iter().map(|(path, _)| path);
    let extents: Vec<_> = files.filter(|path| path.starts_with("extents/")).collect();
    assert_eq!(extents.len(), named.len());
}

#[test]
fn filed_records_survive_a_power_failure_at_any_point() {
    for case in CASES {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut world = World::with(RETAINING);
        let (mut crashes, mut retained) = (0, 0);
        workload(&mut world, case, &mut |world| {
            retained += world.filer.extents().segments().len();
            for _ in 0..4 {
                let disk = world.disk.fork();
                disk.crash(&mut rng);
                let state = world.line.state.lock();
                check_after(Arc::new(disk), &state.models, state.filed);
                crashes += 1;
            }
        });
        assert!(crashes > 500);
        assert!(world.filer.totals().merged_bytes > 0);
        assert_eq!(retained > 100, case.0 > 1_000, "{retained}");
    }
}

#[test]
fn no_filed_record_is_lost_when_any_disk_call_fails() {
    for case in CASES {
        let mut rng = fastrand::Rng::with_seed(12);
        let calls = {
            let mut world = World::with(RETAINING);
            let before = world.disk.calls();
            workload(&mut world, case, &mut |_| ());
            world.disk.calls() - before
        };
        let step = (calls / 150).max(1) as usize;
        for number in (0..calls).step_by(step) {
            let mut world = World::with(RETAINING);
            let first = world.disk.calls() + number;
            let (mut filed, mut models) = (0, Models::new());
            let disk = world.disk.clone();
            let mut is_armed = false;
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                disk.fail_always(Fault::Broken, move |call| call.number >= first);
                workload(&mut world, case, &mut |world| {
                    let state = world.line.state.lock();
                    (filed, models) = (state.filed, state.models.clone());
                    is_armed = true;
                });
            }));
            disk.heal();
            disk.crash(&mut rng);
            assert!(run.is_err() || world.filer.failure().is_some() || number > 0);
            if is_armed {
                check_after(disk, &models, filed);
            }
        }
    }
}
