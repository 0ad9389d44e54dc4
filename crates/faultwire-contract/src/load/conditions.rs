//! `[conditions]`: which code each condition has.

use super::contract::Known;
use crate::condition::{Aspect, Condition};
use crate::contract::ConditionMap;
use crate::section::Section;

/// All the conditions, or it does not load (A1); those with a parent may be left out (A2).
pub(super) fn conditions(root: &Section<'_>, known: &Known<'_>) -> Option<ConditionMap> {
    let section = root.need_section("conditions", "map every condition to one of the codes")?;
    let names: Vec<&str> = Condition::ALL.iter().map(|c| c.name()).collect();
    section.allow(&names);
    let mut rows: Vec<Option<Row>> = Vec::with_capacity(Condition::ALL.len());
    for condition in Condition::ALL {
        let of_parent =
            condition.parent().filter(|_| !section.has(condition.name())).map(|parent| {
                let place = Condition::ALL.iter().position(|c| *c == parent)?;
                rows.get(place)?.as_ref().map(|(code, _)| (*code, Vec::new()))
            });
        rows.push(of_parent.unwrap_or_else(|| row(&section, *condition, known)));
    }
    rows.into_iter().collect::<Option<Vec<_>>>().map(ConditionMap::new)
}

/// The code of a condition, and those of its finer cases.
type Row = (usize, Vec<(Aspect, usize)>);

fn row(section: &Section<'_>, condition: Condition, known: &Known<'_>) -> Option<Row> {
    let name = condition.name();
    if !section.has(name) {
        let what = format!("[conditions] has no {name:?}");
        section.note(what, format!("choose the code for this condition: {}", condition.meaning()));
        return None;
    }
    match section.text_or_section(name)? {
        Ok(id) => Some((known.living(section, &id, name)?, Vec::new())),
        Err(finer) => {
            let mut keys = vec!["any"];
            keys.extend(condition.aspects().iter().map(|a| a.name()));
            finer.allow(&keys);
            let any = finer.need_text("any", "set \"any\" to the code for all other cases")?;
            let own = condition.aspects().iter().filter_map(|aspect| {
                let id = finer.text(aspect.name())?;
                Some((*aspect, known.living(&finer, &id, aspect.name())?))
            });
            let own = own.collect();
            Some((known.living(&finer, &any, name)?, own))
        }
    }
}
