//! Tests that drive the program, by its command line and in guests. They are one program, so that as many guests run at a
//! time as keep the processors busy. The first part of a test's name is its file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]
#![cfg_attr(not(feature = "long"), allow(dead_code, reason = "some helpers are only of tests that take long"))]

mod alarms;
mod arrows;
mod attacks;
mod audit;
mod audit_guests;
mod bop;
mod breakdown;
mod built_kernels;
mod cli;
mod debian;
mod decision_cost;
mod dsm;
mod enforcer;
mod enforcer_cache;
mod enforcer_contexts;
#[cfg(feature = "long")]
mod enforcer_cost;
mod enforcer_daemon;
mod enforcer_labelling;
mod enforcer_labels;
mod enforcer_limits;
mod enforcer_objects;
mod enforcer_processes;
mod enforcer_programs;
mod enforcer_revocation;
mod enforcer_shadow;
mod enforcer_sockets;
mod enforcer_survival;
mod examples;
mod flask;
mod fleet;
mod fleet_zones;
mod guard;
mod guard_calls;
mod guard_debian;
mod guard_domains;
mod guests;
mod hijacks;
mod hooks_count;
mod hooks_graph;
mod keys;
mod latency;
mod learn;
#[cfg(feature = "long")]
mod long;
#[cfg(feature = "long")]
mod lsm_cost;
mod mls;
mod model;
mod network;
mod network_contexts;
#[cfg(feature = "long")]
mod network_cost;
mod network_devices;
mod network_limits;
mod network_paths;
mod network_selinux;
mod network_traffic;
mod page;
mod peers;
mod policy;
mod policy_analysis;
mod policy_decisions;
#[cfg(feature = "long")]
mod policy_figures;
mod policy_guests;
mod policy_others;
mod policy_store;
mod program;
mod readme;
mod saved_machines;
#[cfg(feature = "long")]
mod scale;
mod scenarios;
mod selinux_library;
mod selinux_programs;
mod services;
mod start;
mod transparency;
