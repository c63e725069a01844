use super::build;
use crate::{
    decide::{Levels, Tables},
    model::Policy,
};

#[test]
fn lays_out_a_policy_without_anything() {
    let laid = build(&Policy::default()).unwrap();
    let tables = Tables::new(&laid.tables).unwrap();
    assert_eq!((tables.header().rows, tables.header().columns, tables.header().vectors), (1, 1, 1));
    Levels::new(&laid.levels).unwrap();
    assert_eq!(laid.levels.len(), 1);
}
