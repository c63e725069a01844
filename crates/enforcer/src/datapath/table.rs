//! What the file says, in the numbers of a policy: `struct tg_datapath`, as programs read it.

use std::collections::BTreeMap;

use tollgate_abi::enforcer::{
    TG_UNMAPPED, TG_ZONE_LIMITED, TG_ZONE_REQUIRED, tg_datapath, tg_doi, tg_range4, tg_range6, tg_zone,
};
use tollgate_client::network::{Tag, Translation};
use tollgate_policy::{
    context::{Kind, Names},
    model::{Level, Policy, Range},
    server::SecurityServer,
};

use super::{
    Networks,
    config::{Config, ConfigError, Doi, Seal, Unlabelled, Zone},
    keys::Keys,
};
use crate::contexts::Sid;

/// Numbers contexts and levels of the policy that will be in force. An error says what is wrong with them.
pub trait Numbers {
    /// The SID of a context.
    fn sid(&mut self, context: &str) -> Result<Sid, String>;
    /// The identifier of a level.
    fn level(&mut self, level: &Level) -> Result<u32, String>;
}

/// The table of a policy, but for the policy's own number (`tg_seal.generation`).
///
/// # Errors
///
/// The first entry that does not fit the policy.
pub fn of(networks: &Networks, policy: &Policy, numbers: &mut dyn Numbers) -> Result<Box<tg_datapath>, ConfigError> {
    let Networks { file, config, keys } = networks;
    let mut table: Box<tg_datapath> = Box::default();
    if *config == Config::default() {
        return Ok(table);
    }
    let wrong = |line, message| ConfigError::Wrong { file: file.clone(), line, message };
    let names = Names::of(policy);
    for (own, to) in config.dois.iter().zip(&mut table.doi) {
        doi(own, policy, &names, to).map_err(|message| wrong(own.line, message))?;
    }
    for ((own, to), place) in config.zones.iter().zip(&mut table.zone).zip(1..) {
        *to = zone(own, place, &names, numbers).map_err(|message| wrong(own.line, message))?;
    }
    table.zones = config.zones.len() as u32;
    put_ranges(config, &mut table);
    if let Some(seal) = &config.seal {
        put_seal(seal, keys, &mut table);
    }
    Ok(table)
}

/// Checks whether what the file says fits a policy that need not be in force. The errors are those of [`of`].
pub fn check(networks: &Networks, policy: &Policy, server: &mut SecurityServer<'_>) -> Result<(), ConfigError> {
    of(networks, policy, &mut Unnumbered(server)).map(drop)
}

/// Contexts are valid or not, and nothing has a number.
struct Unnumbered<'a, 'b>(&'a mut SecurityServer<'b>);

impl Numbers for Unnumbered<'_, '_> {
    fn sid(&mut self, context: &str) -> Result<Sid, String> {
        self.0.context(context).map(|_| 0).map_err(|cause| cause.to_string())
    }

    fn level(&mut self, _: &Level) -> Result<u32, String> {
        Ok(0)
    }
}

fn doi(doi: &Doi, policy: &Policy, names: &Names, to: &mut tg_doi) -> Result<(), String> {
    let Doi { number, tag, translation, .. } = doi;
    if *tag != Tag::Sealed && !policy.mls {
        let name = tag.name();
        return Err(format!(
            "[[doi]] {number}: tag = \"{name}\": the policy has no levels (MLS); write tag = \"sealed\""
        ));
    }
    (to.number, to.tag) = (*number, tag.number());
    if let Some(translation) = translation {
        to.translated = 1;
        translate(translation, names, to).map_err(|message| format!("[[doi]] {number}: {message}"))?;
    }
    Ok(())
}

fn translate(translation: &Translation, names: &Names, to: &mut tg_doi) -> Result<(), String> {
    let find = |kind, name: &str| names.find(kind, name).map_err(|cause| cause.to_string());
    // A policy counts sensitivities from 1.
    let sensitivity = |name: &str| find(Kind::Sensitivity, name).map(|found| found as usize - 1);
    let category = |name: &str| find(Kind::Category, name).map(|found| found as usize);
    map(&translation.levels, sensitivity, &mut to.sensitivity_out, &mut to.sensitivity_in)
        .map_err(|message| format!("levels: {message}"))?;
    map(&translation.categories, category, &mut to.category_out, &mut to.category_in)
        .map_err(|message| format!("categories: {message}"))
}

/// Writes both directions of some numbers. `find` returns the place of a name in the policy.
fn map(
    numbers: &BTreeMap<String, u16>,
    find: impl Fn(&str) -> Result<usize, String>,
    out: &mut [u16],
    back: &mut [u16],
) -> Result<(), String> {
    let count = out.len();
    out.fill(TG_UNMAPPED as u16);
    back.fill(TG_UNMAPPED as u16);
    for (name, number) in numbers {
        let place = find(name).map_err(|cause| format!("{name}: {cause}"))?;
        let beyond = || format!("{name}: only the policy's first {count} can be translated; leave it out");
        let to = out.get_mut(place).ok_or_else(beyond)?;
        if *to != TG_UNMAPPED as u16 {
            return Err(format!("{name}: an alias of it is listed, too; leave one out"));
        }
        *to = *number;
        // The reader of the file has checked that the number has a place.
        back[usize::from(*number)] = place as u16;
    }
    Ok(())
}

fn zone(zone: &Zone, place: usize, names: &Names, numbers: &mut dyn Numbers) -> Result<tg_zone, String> {
    let called = zone.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let failed = |message: String| format!("[[zone]] {place}{called}: {message}");
    let mut raw = tg_zone { doi: zone.doi.map_or(0, |place| 1 + place as u32), ..tg_zone::default() };
    match &zone.unlabelled {
        Unlabelled::Initial => {}
        Unlabelled::Refused => raw.flags |= TG_ZONE_REQUIRED,
        Unlabelled::Context(context) => {
            let sid = numbers.sid(context);
            raw.unlabelled = sid.map_err(|cause| failed(format!("unlabelled = \"{context}\": {cause}")))?;
        }
    }
    if let Some(text) = &zone.range {
        let levels = range(text, names).and_then(|range| Ok((numbers.level(&range.low)?, numbers.level(&range.high)?)));
        (raw.low, raw.high) = levels.map_err(|cause| failed(format!("range = \"{text}\": {cause}")))?;
        raw.flags |= TG_ZONE_LIMITED;
    }
    Ok(raw)
}

fn range(text: &str, names: &Names) -> Result<Range, String> {
    let range = names.range(text).map_err(|cause| cause.to_string())?;
    let Range { low, high } = &range;
    if low.sensitivity > high.sensitivity || low.categories.iter().any(|category| !high.categories.has(category)) {
        return Err("the second level must dominate the first; exchange them, or add categories to it".to_owned());
    }
    Ok(range)
}

fn put_ranges(config: &Config, table: &mut tg_datapath) {
    let number = |zone: Option<usize>| zone.map_or(0, |place| 1 + place as u32);
    let (ranges4, ranges6) = (config.ranges(true), config.ranges(false));
    (table.ranges4, table.ranges6) = (ranges4.len() as u32, ranges6.len() as u32);
    for (range, to) in ranges4.iter().zip(&mut table.range4) {
        *to = tg_range4 { first: range.first as u32, zone: number(range.zone) };
    }
    for (range, to) in ranges6.iter().zip(&mut table.range6) {
        let first = [(range.first >> 64) as u64, range.first as u64];
        *to = tg_range6 { first, zone: number(range.zone), reserved: 0 };
    }
}

fn put_seal(seal: &Seal, keys: &Keys, table: &mut tg_datapath) {
    let to = &mut table.seal;
    (to.node, to.tolerance) = (seal.node.into(), seal.tolerance.into());
    to.keys = keys.iter().len() as u32;
    for (place, key) in keys.iter().enumerate() {
        let (words, _) = key.secret.as_chunks::<8>();
        to.key[place] = std::array::from_fn(|word| u64::from_ne_bytes(words[word]));
        to.number[place] = key.number.into();
    }
}

#[cfg(test)]
mod tests;
