//! The table of a database in the kernel.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapInfo, MapType, libbpf_sys};
use tollgate_abi::bytes_of;
use tollgate_guard::{Database, Secret, Table};

/// How many entries are written by one system call.
const BATCH: usize = 4096;

/// Makes a map like `template`, down to its types (`generation::like`), with the entries of a database.
pub(super) fn make(template: &MapHandle, database: &Database, secret: Secret) -> libbpf_rs::Result<MapHandle> {
    let (info, table) = (MapInfo::new(template.as_fd())?.info, Table::of(database, secret));
    // SAFETY: the call takes a number only.
    let types = unsafe { libbpf_sys::bpf_btf_get_fd_by_id(info.btf_id) };
    if types < 0 {
        return Err(io::Error::from_raw_os_error(-types).into());
    }
    // SAFETY: the kernel has just given this descriptor to us.
    let types = unsafe { OwnedFd::from_raw_fd(types) };
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        map_flags: info.map_flags,
        btf_fd: types.as_raw_fd() as u32,
        btf_key_type_id: info.btf_key_type_id,
        btf_value_type_id: info.btf_value_type_id,
        ..Default::default()
    };
    let places = u32::try_from(table.entries().len()).unwrap_or(u32::MAX);
    let map = MapHandle::create(MapType::Hash, Some("guard_table"), info.key_size, info.value_size, places, &options)?;
    let entries: Vec<_> = table.entries().collect();
    for batch in entries.chunks(BATCH) {
        let keys: Vec<u8> = batch.iter().flat_map(|(key, _)| bytes_of(key)).copied().collect();
        let values: Vec<u8> = batch.iter().flat_map(|(_, entry)| bytes_of(entry)).copied().collect();
        map.update_batch(&keys, &values, batch.len() as u32, MapFlags::ANY, MapFlags::ANY)?;
    }
    Ok(map)
}
