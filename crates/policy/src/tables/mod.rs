//! Decision tables: a policy in the form that `tables.h` describes, with the present values of the booleans.
//!
//! What the tables cannot hold is refused ([`TableLimit`]), and never left out.

mod constraints;
mod folded;
mod keys;
mod labels;
mod layout;
mod levels;
mod limit;
mod matrix;
mod records;
mod tuples;

use tollgate_abi::tables::{TG_CATEGORIES, TG_MAGIC, TG_VERSION, tg_entry, tg_header};

use crate::model::{Level, Policy};

use self::{folded::Folded, keys::Keys, layout::Layout, levels::Levels, tuples::Tuples};

pub use limit::TableLimit;
pub(crate) use records::SOCKETS;

/// Decision tables for the evaluator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Laid {
    /// The tables, at most `TG_CAPACITY` bytes.
    pub tables: Vec<u8>,
    /// The policy's own levels, in the order of the identifiers that the tables use. The first is empty.
    pub levels: Vec<Level>,
}

/// Makes the tables of `policy`. The same policy always gives the same bytes.
///
/// # Errors
///
/// The first limit that the policy exceeds.
///
/// # Panics
///
/// If an identifier in `policy` is not one of its own. `dump::read` accepts no such policy.
pub fn build(policy: &Policy) -> Result<Laid, TableLimit> {
    check_identifiers(policy)?;
    let (mut keys, mut levels, mut layout) = (Keys::default(), Levels::new(), Layout::new());
    let mut tuples = Tuples::new(policy);
    let matrix = matrix::build(policy, &mut tuples, &mut keys)?;
    let (tuples, extended) = tuples.finish(&mut keys);
    let code = constraints::compile(policy)?;
    let users = records::users(policy, &code.sets, &mut levels, &mut layout)?;
    let roles = records::roles(policy, &code.sets, &mut layout)?;
    let sensitivities = records::sensitivities(policy, &mut levels)?;
    labels::types(policy, &mut keys);
    labels::roles(policy, &mut keys);
    labels::ranges(policy, &mut levels, &mut keys)?;
    labels::names(policy, &mut layout, &mut keys)?;
    let vectors = Folded::new("blocks of vectors", &matrix.entries, policy.classes.len().max(1))?;
    let cells = Folded::new("blocks of the matrix of types", &matrix.cells, matrix.columns as usize)?;
    // Greatest identifiers; element 0 of each vector is unused.
    let last = |count: usize| count.saturating_sub(1) as u32;
    let mut header = tg_header {
        magic: TG_MAGIC,
        version: TG_VERSION,
        mls: policy.mls.into(),
        types: last(policy.types.len()),
        classes: last(policy.classes.len()),
        roles: last(policy.roles.len()),
        users: last(policy.users.len()),
        sensitivities: last(policy.sensitivities.len()),
        rows: matrix.rows,
        columns: matrix.columns,
        vectors: matrix.vectors,
        tuples: tuples.len() as u32,
        type_at: layout.push("types", &records::types(policy, &matrix, &code.sets)?)?,
        class_at: layout.push("classes", &records::classes(policy, &code.classes))?,
        role_at: layout.push("roles", &roles)?,
        user_at: layout.push("users", &users)?,
        sensitivity_at: layout.push("sensitivities", &sensitivities)?,
        tuple_at: layout.push("access vectors", &tuples)?,
        code_at: layout.push("constraints", &code.steps)?,
        extended_at: layout.push("extended permissions", &extended)?,
        vector: vectors.push("vectors of classes", &mut layout)?,
        matrix: cells.push("matrix of types", &mut layout)?,
        ..tg_header::default()
    };
    let placed = keys.place(layout.room::<tg_entry>())?;
    header.key_at = layout.push("keys", &placed.slots)?;
    header.key_shift = placed.shift;
    Ok(Laid { tables: layout.finish(header), levels: levels.finish() })
}

/// Keys and contexts have 16 bits for an identifier.
fn check_identifiers(policy: &Policy) -> Result<(), TableLimit> {
    let counts = [
        ("types and attributes", policy.types.len()),
        ("classes", policy.classes.len()),
        ("roles", policy.roles.len()),
        ("users", policy.users.len()),
        ("sensitivities", policy.sensitivities.len()),
    ];
    for (what, count) in counts {
        let (has, most) = (count.saturating_sub(1), usize::from(u16::MAX));
        if has > most {
            return Err(TableLimit::Identifiers { what, has, most });
        }
    }
    match policy.categories.len() {
        has if has > TG_CATEGORIES as usize => Err(TableLimit::Categories { has }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
