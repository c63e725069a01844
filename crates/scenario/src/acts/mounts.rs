//! Acts on mounts.

use std::io;

use super::{Act, bits};
use crate::kernel::{
    Argument::{Number, Text},
    call, text,
};

pub(super) const ACTS: &[Act] = &[
    Act::new("mount", "FILESYSTEM PATH", |_, w| mount("none", w[1], w[0], 0)),
    Act::new("mount-overlay", "PATH OPTIONS", |_, w| {
        let (none, path, overlay, options) = (text("none"), text(w[0]), text("overlay"), text(w[1]));
        call(libc::SYS_mount, &mut [Text(&none), Text(&path), Text(&overlay), Number(0), Text(&options)]).map(drop)
    }),
    Act::new("bind-mount", "FROM TO", |_, w| mount(w[0], w[1], "none", libc::MS_BIND)),
    Act::new("move-mount", "FROM TO", |_, w| mount(w[0], w[1], "none", libc::MS_MOVE)),
    Act::new("remount", "PATH", |_, w| mount("none", w[0], "none", libc::MS_REMOUNT | libc::MS_NOATIME)),
    Act::new("share-mount", "PATH", |_, w| mount("none", w[0], "none", libc::MS_PRIVATE)),
    Act::new("umount", "PATH HOW", |_, w| {
        let how = bits(w[1], &[("detach", libc::MNT_DETACH.into())])?;
        call(libc::SYS_umount2, &mut [Text(&text(w[0])), Number(how)]).map(drop)
    }),
    Act::new("pivot-root", "NEW OLD", |_, w| {
        call(libc::SYS_pivot_root, &mut [Text(&text(w[0])), Text(&text(w[1]))]).map(drop)
    }),
];

fn mount(source: &str, target: &str, filesystem: &str, flags: u64) -> io::Result<()> {
    let (source, target, filesystem) = (text(source), text(target), text(filesystem));
    let flags = Number(flags as i64);
    call(libc::SYS_mount, &mut [Text(&source), Text(&target), Text(&filesystem), flags, Number(0)]).map(drop)
}
