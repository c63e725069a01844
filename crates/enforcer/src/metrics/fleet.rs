//! What a node has of its fleet, as metrics.

use tollgate_client::fleet::Report;

use super::{Kind, Page};

/// Adds them. `now` is in seconds since 1970.
pub(super) fn add(page: &mut Page, report: &Report, now: u64) {
    let Report { agent, generation, mode, .. } = report;
    let names = [("fleet", &report.fleet), ("node", &report.node), ("group", &report.group)];
    let names = names.map(|(key, name)| (key, name.as_str())).to_vec();
    page.metric("fleet_info", Kind::Gauge, "The node's names; always 1.", [(names, 1)]);
    let help = "The number of the newest manifest that this node has accepted; 0: none.";
    let of = vec![("fleet", report.fleet.as_str()), ("group", report.group.as_str())];
    page.metric("fleet_generation", Kind::Gauge, help, [(of, report.number)]);
    let has = generation.as_deref().zip(mode.as_deref());
    let has = has.map(|(generation, mode)| (vec![("generation", generation), ("mode", mode)], 1));
    let help = "The generation of the fleet that this node has, and its mode; always 1.";
    page.metric("fleet_generation_info", Kind::Gauge, help, has);
    let expires = report.expires.map(|expires| (Vec::new(), expires));
    let help = "Until when the newest manifest is valid, in seconds since 1970.";
    page.metric("fleet_expires_time_seconds", Kind::Gauge, help, expires);
    let help = "For how long this node has not known what is newest; 0: it knows.";
    page.gauge("fleet_stale_seconds", help, report.stale_since.map_or(0, |since| now.saturating_sub(since)));
    let help = "Whether what was offered last is refused, or this node went back from it (1).";
    page.gauge("fleet_refused", help, u8::from(report.refused.is_some()));
    let help = "Offers refused since the daemon began.";
    page.metric("fleet_offers_refused_total", Kind::Counter, help, [(Vec::new(), report.refusals)]);
    page.gauge("fleet_not_enforced", "Things of the generation that are not enforced.", report.unenforced);
    page.gauge("fleet_denials_last_minute", "Denials in the last minute.", report.denials);
    let help = "Whether the fleet's agent runs, or nothing says that it does not (1).";
    page.gauge("fleet_agent_up", help, u8::from(!agent.state.is_missing()));
    let looked = agent.looked.map(|looked| (Vec::new(), looked));
    let help = "When the agent looked into the store last, in seconds since 1970.";
    page.metric("fleet_agent_look_time_seconds", Kind::Gauge, help, looked);
    let help = "Looks that did not show what is newest, since the daemon began.";
    page.metric("fleet_agent_failures_total", Kind::Counter, help, [(Vec::new(), agent.failures)]);
}
