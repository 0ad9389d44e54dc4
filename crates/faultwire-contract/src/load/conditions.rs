//! `[conditions]`: which code each condition has.

use super::contract::Known;
use super::section::Section;
use crate::condition::{Aspect, Condition};
use crate::contract::ConditionMap;

/// All the conditions, or it does not load (A1).
pub(super) fn conditions(root: &Section<'_>, known: &Known<'_>) -> Option<ConditionMap> {
    let section = root.need_section("conditions", "map every condition to one of the codes")?;
    let names: Vec<&str> = Condition::ALL.iter().map(|c| c.name()).collect();
    section.allow(&names);
    let rows: Vec<_> = Condition::ALL.iter().map(|c| condition(&section, *c, known)).collect();
    rows.into_iter().collect::<Option<Vec<_>>>().map(ConditionMap::new)
}

fn condition(
    section: &Section<'_>,
    condition: Condition,
    known: &Known<'_>,
) -> Option<(usize, Vec<(Aspect, usize)>)> {
    let name = condition.name();
    if !section.has(name) {
        let what = format!("[conditions] has no {name:?}");
        section.note(what, format!("name the code for this: {}", condition.meaning()));
        return None;
    }
    match section.text_or_section(name)? {
        Ok(id) => Some((known.living(section, &id, name)?, Vec::new())),
        Err(finer) => {
            let mut keys = vec!["any"];
            keys.extend(condition.aspects().iter().map(|a| a.name()));
            finer.allow(&keys);
            let any =
                finer.need_text("any", "\"any\" is the code for every case not named here")?;
            let own = condition.aspects().iter().filter_map(|aspect| {
                let id = finer.text(aspect.name())?;
                Some((*aspect, known.living(&finer, &id, aspect.name())?))
            });
            let own = own.collect();
            Some((known.living(&finer, &any, name)?, own))
        }
    }
}
