use super::*;
use crate::SimulatedDisk;

const SIZE: u64 = 3 << 20;

#[test]
fn the_reserve_survives_restarts_until_it_is_released() {
    let disk = Arc::new(SimulatedDisk::new(1));
    let mut reserve = Reserve::open(disk.clone(), SIZE).unwrap();
    assert!(!reserve.is_held());
    reserve.hold().unwrap();
    assert_eq!(disk.used(), SIZE);
    let mut reserve = Reserve::open(disk.clone(), SIZE).unwrap();
    assert!(reserve.is_held());
    reserve.release().unwrap();
    assert_eq!((disk.used(), reserve.is_held()), (0, false));
}

#[test]
fn failed_reserve_leaves_no_file() {
    let disk = Arc::new(SimulatedDisk::new(1));
    disk.set_capacity(SIZE - 1);
    let mut reserve = Reserve::open(disk.clone(), SIZE).unwrap();
    assert!(reserve.hold().is_err());
    assert_eq!((disk.used(), reserve.is_held()), (0, false));
    disk.set_capacity(SIZE);
    reserve.hold().unwrap();
    assert!(reserve.is_held());
}

#[test]
fn reserve_of_another_size_is_removed() {
    let disk = Arc::new(SimulatedDisk::new(1));
    Reserve::open(disk.clone(), SIZE).unwrap().hold().unwrap();
    let mut reserve = Reserve::open(disk.clone(), 0).unwrap();
    assert_eq!((disk.used(), reserve.is_held()), (0, true));
    reserve.hold().unwrap();
    reserve.release().unwrap();
    assert_eq!(disk.used(), 0);
}
