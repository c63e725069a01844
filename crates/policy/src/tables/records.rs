//! The records of types, classes, roles and users.

use tollgate_abi::tables::{
    TG_BOUNDS, TG_CLASS_LEVELS, TG_CLASS_PROCESS, TG_DEFAULT_SOURCE, TG_DEFAULT_TARGET, TG_TYPE_EXISTS,
    TG_TYPE_PERMISSIVE, tg_class, tg_role, tg_type, tg_user,
};

use crate::model::{Bits, Class, NameKind, Policy, WhoseDefault};

use super::{
    constraints::{ClassCode, Sets},
    layout::Layout,
    levels::Levels,
    limit::TableLimit,
    matrix::Matrix,
};

/// The kernel's socket classes (classmap.h of Linux 6.16, unchanged since), whose new objects `security_compute_sid`
/// labels like their creator. A class of another object manager with `_socket` in its name does not count.
pub(crate) const SOCKETS: &[&str] = &[
    "alg_socket",
    "appletalk_socket",
    "atmpvc_socket",
    "atmsvc_socket",
    "ax25_socket",
    "bluetooth_socket",
    "caif_socket",
    "can_socket",
    "dccp_socket",
    "decnet_socket",
    "icmp_socket",
    "ieee802154_socket",
    "ipx_socket",
    "irda_socket",
    "isdn_socket",
    "iucv_socket",
    "kcm_socket",
    "key_socket",
    "llc_socket",
    "mctp_socket",
    "netlink_audit_socket",
    "netlink_connector_socket",
    "netlink_crypto_socket",
    "netlink_dnrt_socket",
    "netlink_fib_lookup_socket",
    "netlink_generic_socket",
    "netlink_iscsi_socket",
    "netlink_kobject_uevent_socket",
    "netlink_netfilter_socket",
    "netlink_nflog_socket",
    "netlink_rdma_socket",
    "netlink_route_socket",
    "netlink_scsitransport_socket",
    "netlink_selinux_socket",
    "netlink_socket",
    "netlink_tcpdiag_socket",
    "netlink_xfrm_socket",
    "netrom_socket",
    "nfc_socket",
    "packet_socket",
    "phonet_socket",
    "pppox_socket",
    "qipcrtr_socket",
    "rawip_socket",
    "rds_socket",
    "rose_socket",
    "rxrpc_socket",
    "sctp_socket",
    "smc_socket",
    "socket",
    "tcp_socket",
    "tipc_socket",
    "tun_socket",
    "udp_socket",
    "unix_dgram_socket",
    "unix_stream_socket",
    "vsock_socket",
    "x25_socket",
    "xdp_socket",
];

/// The records of types.
pub(super) fn types(policy: &Policy, matrix: &Matrix, sets: &Sets) -> Result<Vec<tg_type>, TableLimit> {
    let mut records = Vec::with_capacity(policy.types.len());
    for ((type_, (row, column)), number) in policy.types.iter().zip(&matrix.of_type).zip(0..) {
        if type_.attribute || type_.name.is_empty() {
            records.push(tg_type::default());
            continue;
        }
        check_bounds(policy, number)?;
        records.push(tg_type {
            row: *row,
            column: *column,
            bounds: type_.bounds,
            flags: TG_TYPE_EXISTS | if type_.permissive { TG_TYPE_PERMISSIVE } else { 0 },
            sets: sets.of(NameKind::Type, number),
            reserved: 0,
        });
    }
    Ok(records)
}

fn check_bounds(policy: &Policy, type_: u32) -> Result<(), TableLimit> {
    let mut now = type_;
    for _ in 0..=TG_BOUNDS {
        now = policy.types[now as usize].bounds;
        if now == 0 {
            return Ok(());
        }
    }
    Err(TableLimit::Bounds { type_: policy.types[type_ as usize].name.clone() })
}

/// The records of classes.
pub(super) fn classes(policy: &Policy, code: &[ClassCode]) -> Vec<tg_class> {
    policy.classes.iter().zip(code).map(|(class, code)| class_record(class, code)).collect()
}

fn class_record(class: &Class, code: &ClassCode) -> tg_class {
    let process = class.name == "process";
    let like_creator = process || SOCKETS.contains(&class.name.as_str());
    let changes_role = |name: &String| process && (name == "transition" || name == "dyntransition");
    tg_class {
        code: code.code.0,
        steps: code.code.1,
        change: code.change.0,
        change_steps: code.change.1,
        role_change: (0..)
            .zip(&class.permissions)
            .filter(|(_, name)| changes_role(name))
            .fold(0, |w, (b, _)| w | 1 << b),
        default_user: whose(class.default_user),
        default_role: whose(class.default_role),
        default_type: whose(class.default_type),
        // Lossless: one of TG_RANGE_*.
        default_range: class.default_range as u8,
        flags: if like_creator { TG_CLASS_PROCESS } else { 0 } | if code.levels { TG_CLASS_LEVELS } else { 0 },
        reserved: 0,
    }
}

fn whose(default: WhoseDefault) -> u8 {
    match default {
        WhoseDefault::None => 0,
        WhoseDefault::Source => TG_DEFAULT_SOURCE as u8,
        WhoseDefault::Target => TG_DEFAULT_TARGET as u8,
    }
}

/// The records of roles; their bit maps go to `layout`.
pub(super) fn roles(policy: &Policy, sets: &Sets, layout: &mut Layout) -> Result<Vec<tg_role>, TableLimit> {
    let mut records = Vec::with_capacity(policy.roles.len());
    for (role, number) in policy.roles.iter().zip(0..) {
        records.push(tg_role {
            sets: sets.of(NameKind::Role, number),
            types_at: layout.bit_map(&role.types, policy.types.len())?,
            dominates_at: layout.bit_map(&role.dominates, policy.roles.len())?,
        });
    }
    Ok(records)
}

/// The records of users; their bit maps go to `layout`.
pub(super) fn users(
    policy: &Policy,
    sets: &Sets,
    levels: &mut Levels,
    layout: &mut Layout,
) -> Result<Vec<tg_user>, TableLimit> {
    let mut records = Vec::with_capacity(policy.users.len());
    for (user, number) in policy.users.iter().zip(0..) {
        records.push(tg_user {
            sets: sets.of(NameKind::User, number),
            roles_at: layout.bit_map(&user.roles, policy.roles.len())?,
            low: levels.intern(&user.range.low, "a user")?,
            high: levels.intern(&user.range.high, "a user")?,
            reserved: [0; 3],
        });
    }
    Ok(records)
}

/// By sensitivity: the level with all categories that it may have.
pub(super) fn sensitivities(policy: &Policy, levels: &mut Levels) -> Result<Vec<u32>, TableLimit> {
    let full = |(sensitivity, categories): (u32, &Bits)| {
        let level = crate::model::Level { sensitivity, categories: categories.clone() };
        levels.intern(&level, "a sensitivity")
    };
    (0..).zip(policy.sensitivities.iter().map(|sensitivity| &sensitivity.categories)).map(full).collect()
}
