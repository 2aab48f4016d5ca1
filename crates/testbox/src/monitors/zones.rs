//! Memory zones: `/proc/buddyinfo` (free blocks by size) and `/proc/zoneinfo` (free pages and the
//! marks that reclaim goes by).

use super::scan::Scan;
use super::source::Source;
use super::table::{Line, Spec, Table};

/// Free blocks of each order.
pub(super) struct BuddyInfo;

/// Orders that any kernel has.
const MOST_ORDERS: usize = 16;

/// `Node 0, zone   Normal` as `0 Normal`, the place behind it.
fn zone<'a>(scan: &mut Scan<'a>) -> Option<(&'a [u8], &'a [u8])> {
    if scan.until(b' ')? != b"Node" {
        return None;
    }
    let node = scan.until(b',')?;
    if scan.until(b' ')? != b"zone" {
        return None;
    }
    Some((node, scan.word()?))
}

/// A key for a zone, and the part of a metric's name that it makes.
fn key_of((node, zone): (&[u8], &[u8])) -> Vec<u8> {
    [b"node", node, b".", zone].concat()
}

impl Source for BuddyInfo {
    fn name(&self) -> &'static str {
        "buddyinfo"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        while !scan.is_empty() {
            if let Some(zone) = zone(&mut scan)
                && let Some(mut cells) = table.cells(&key_of(zone), b"", MOST_ORDERS)
            {
                while let Some(blocks) = scan.number() {
                    cells.push(Some(blocks));
                }
            }
            scan.line();
        }
    }

    fn describe(&self, line: &Line, _active: bool) -> Vec<Spec> {
        let zone = String::from_utf8_lossy(&line.key);
        (0..MOST_ORDERS)
            .map(|order| Spec::gauge(format!("{zone}.order{order}"), ""))
            .collect()
    }
}

/// Free pages and marks of each zone.
pub(super) struct ZoneInfo;

const MARKS: [&[u8]; 5] = [b"free", b"min", b"low", b"high", b"managed"];

impl Source for ZoneInfo {
    fn name(&self) -> &'static str {
        "zoneinfo"
    }

    fn parse(&self, _file: usize, text: &[u8], table: &mut Table) {
        let mut scan = Scan::new(text);
        let mut key: Option<Vec<u8>> = None;
        let mut found = [None; MARKS.len()];
        while !scan.is_empty() {
            let mut line = Scan::new(scan.line());
            if let Some(zone) = zone(&mut Scan::new(line.rest())) {
                key = Some(key_of(zone));
                found = [None; MARKS.len()];
                continue;
            }
            let mut word = line.word();
            if word == Some(b"pages") {
                word = line.word();
            }
            let Some(place) = MARKS.iter().position(|mark| Some(*mark) == word) else {
                continue;
            };
            if let Some(slot) = found.get_mut(place)
                && slot.is_none()
            {
                *slot = line.number();
            }
            // `managed` is the last of them.
            if place + 1 == MARKS.len()
                && let Some(key) = key.take()
                && let Some(mut cells) = table.cells(&key, b"", MARKS.len())
            {
                found.into_iter().for_each(|pages| cells.push(pages));
            }
        }
    }

    fn describe(&self, line: &Line, active: bool) -> Vec<Spec> {
        if !active {
            return Vec::new();
        }
        let zone = String::from_utf8_lossy(&line.key);
        let gauge =
            |mark: &[u8]| Spec::gauge(format!("{zone}.{}", String::from_utf8_lossy(mark)), "pages");
        MARKS.iter().map(|mark| gauge(mark)).collect()
    }
}
