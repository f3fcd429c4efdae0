import { isObject, type JsonObject, type JsonValue, parseObject } from '../../../src/json.ts';
import type { Platform } from '../../../src/settings/field.ts';
import { equal } from '../../../src/settings/own.ts';
import { type Change, membersOf } from './changes.ts';
import {
  addComments,
  asSection,
  commentsIn,
  type Entry,
  entryText,
  jsonOf,
  jsonTree,
  type Layout,
  layOut,
  memberOf,
  newEntry,
  quotesOf,
  quoteText,
  readTree,
  type Section,
  setValue,
  splitLead,
  textOf,
} from './document-tree.ts';

interface RewriteInput {
  text: string;
  value: JsonObject;
  /** Pointer of the settings in the document. */
  at: '' | '/settings';
  version: number;
  platform: Platform;
  changes: readonly Change[];
}

export interface Rewritten {
  text: string;
  /** Comments that were removed with a change: each from its `#` on. */
  dropped: ReadonlyMap<Change, readonly string[]>;
}

/** A section on the way to a setting, and its member there. */
interface Step {
  section: Section;
  entry: Entry;
}

/**
 * Returns the text with the changes made and all other lines unchanged. An edited `Document` of `yaml` would reformat them. Brackets around a change
 * become one line per setting, and JSON keeps its indentation. Returns undefined if there is no place for a change; the caller verifies the meaning
 * of the result.
 */
export function rewritten(input: RewriteInput): Rewritten | undefined {
  return parseObject(input.text) ? rewrittenJson(input) : rewrittenYaml(input);
}

function rewrittenJson(input: RewriteInput): Rewritten | undefined {
  const root = jsonTree(input.value);
  const dropped = new Rewriter(root, input, { eol: '\n', step: 2 }).run();
  if (!dropped) return undefined;
  const indentation = /\n([ \t]+)"/.exec(input.text)?.[1];
  const [, end = ''] = /(\s*)$/.exec(input.text) ?? [];
  return { text: `${JSON.stringify(jsonOf(root), null, indentation)}${end}`, dropped };
}

function rewrittenYaml(input: RewriteInput): Rewritten | undefined {
  const eol = input.text.includes('\r\n') ? '\r\n' : '\n';
  // The last line may lack its end, and another one may follow it.
  const open = !input.text.endsWith('\n');
  const tree = readTree(open ? `${input.text}${eol}` : input.text, input.value, eol);
  if (!tree) return undefined;
  const dropped = new Rewriter(tree.root, input, { eol, step: stepOf(tree.root) ?? 2 }).run();
  if (!dropped) return undefined;
  const text = `${tree.before}${textOf(tree.root)}`;
  return { text: open && text.endsWith(eol) ? text.slice(0, -eol.length) : text, dropped };
}

class Rewriter {
  private readonly input: RewriteInput;
  private readonly layout: Layout;
  private readonly root: Section | undefined;
  /** The new place of the first member that left a section, to which comments about the section move. */
  private readonly heirs = new Map<Entry, Step>();
  private readonly dropped = new Map<Change, string[]>();

  constructor(root: Section, input: RewriteInput, layout: Layout) {
    this.input = input;
    this.layout = layout;
    const settings = input.at === '' ? undefined : memberOf(root, 'settings');
    this.root = input.at === '' ? root : settings && asSection(settings, root.column, layout);
  }

  run(): Rewritten['dropped'] | undefined {
    for (const change of this.input.changes) if (!this.apply(change)) return undefined;
    return this.dropped;
  }

  private apply(change: Change): boolean {
    const { from, to, before, after } = change;
    const way = this.wayTo(from.split('.'));
    const last = way?.at(-1);
    if (!way || !last) return false;
    if (to !== undefined && after !== undefined && !equal(before, after)) this.change(last, change, after);
    if (to === from) return true;
    if (to === undefined) this.drop(change, last);
    else if (!this.move(last, way, to)) return false;
    this.dropEmptied(change, way);
    return true;
  }

  /** Removes a setting with its comments, which would otherwise seem to be about the following one. */
  private drop(change: Change, { section, entry }: Step): void {
    cut(section, entry);
    const comments = commentsIn(entryText(entry));
    if (comments.length > 0) this.dropped.set(change, [...(this.dropped.get(change) ?? []), ...comments]);
  }

  private change({ section, entry }: Step, change: Change, after: JsonValue): void {
    entry.value = after;
    const members = typeof entry.body === 'string' ? undefined : entry.body;
    if (members) this.changeMembers(members, change);
    if (!members || members.entries.length === 0) setValue(entry, after, section.column, this.layout);
  }

  private changeMembers(section: Section, change: Change): void {
    const members = membersOf(change, this.input.version, this.input.platform);
    for (const entry of [...section.entries]) {
      const became = members.get(entry.name);
      if (!became) {
        this.drop(change, { section, entry });
        continue;
      }
      if (became.name !== entry.name) rename(entry, became.name);
      if (!equal(became.value, entry.value)) setValue(entry, became.value, section.column, this.layout);
    }
  }

  private move({ section: old, entry }: Step, way: readonly Step[], to: string): boolean {
    const names = to.split('.');
    const last = names.pop() ?? '';
    const index = cut(old, entry);
    let section = this.root;
    let made: Step | undefined;
    for (const name of names) {
      if (!section) return false;
      const known = memberOf(section, name);
      const around: Entry = known ?? this.makeSection(section, name, way, entry, index);
      if (!known) made ??= { section, entry: around };
      section = asSection(around, section.column, this.layout);
    }
    if (!section) return false;
    const there = memberOf(section, last);
    if (there) {
      // The value at the older name wins, as for every reader.
      cut(section, there);
      addComments(entry, commentsIn(entryText(there)), section.column, this.layout.eol);
    }
    rename(entry, last);
    layOut(entry, section.column, this.layout);
    this.insert(section, entry, way, index);
    for (const step of way.slice(0, -1)) {
      if (!this.heirs.has(step.entry)) this.heirs.set(step.entry, made ?? { section, entry });
    }
    return true;
  }

  /** Creates a missing section at the position of its first setting. */
  private makeSection(section: Section, name: string, way: readonly Step[], first: Entry, index: number): Entry {
    const body = { column: section.column + this.layout.step, entries: [], end: '' };
    const entry: Entry = { ...newEntry(name, {}), key: quoteText(name, quotesOf(first.key)), body };
    layOut(entry, section.column, this.layout);
    this.insert(section, entry, way, index, first);
    return entry;
  }

  /** Inserts an entry at the position of the moved value, or after the section that contained it; after entries added there before; or at the end. */
  private insert(section: Section, entry: Entry, way: readonly Step[], index: number, moved = entry): void {
    const { entries } = section;
    const step = way.find((each) => each.section === section);
    let at = entries.length;
    if (step) {
      at = step.entry === moved ? index : entries.indexOf(step.entry) + 1;
      while (entries[at]?.added) at += 1;
    }
    entry.added = true;
    entries.splice(at, 0, entry);
  }

  /** Removes the sections that lost their last member. */
  private dropEmptied(change: Change, way: readonly Step[]): void {
    for (const step of way.slice(0, -1).reverse()) {
      const { section, entry } = step;
      if (typeof entry.body === 'string' || entry.body.entries.length > 0) return;
      const heir = this.heirs.get(entry);
      if (heir) {
        cut(section, entry);
        addComments(heir.entry, commentsIn(entryText(entry)), heir.section.column, this.layout.eol);
      } else this.drop(change, step);
    }
  }

  private wayTo(names: readonly string[]): Step[] | undefined {
    const way: Step[] = [];
    let section = this.root;
    for (const [index, name] of names.entries()) {
      const entry = section && memberOf(section, name);
      if (!section || !entry) return undefined;
      way.push({ section, entry });
      if (index < names.length - 1) section = asSection(entry, section.column, this.layout);
    }
    return way;
  }
}

/** Removes a member with the comments directly above it, and returns its position. Comments above a blank line stay. */
function cut(section: Section, entry: Entry): number {
  const { entries } = section;
  const index = entries.indexOf(entry);
  entries.splice(index, 1);
  const [staying, attached] = splitLead(entry.lead);
  entry.lead = attached;
  const next = entries[index];
  if (next) next.lead = joinLines(staying, next.lead, index === 0);
  else section.end = joinLines(staying, section.end, true);
  return index;
}

/** Joins the lines of two places, merging adjacent blank lines. */
function joinLines(staying: string, following: string, edge: boolean): string {
  const blank = staying.trim() === '';
  return blank && (edge || /^[ \t]*\r?\n/.test(following)) ? following : `${staying}${following}`;
}

function rename(entry: Entry, name: string): void {
  entry.name = name;
  entry.key = quoteText(name, quotesOf(entry.key));
}

/** Returns the columns between a section and the first section in it; undefined without one. */
function stepOf({ column, entries }: Section): number | undefined {
  for (const { body, value } of entries) {
    if (typeof body === 'string' || !isObject(value)) continue;
    return body.column - column;
  }
  return undefined;
}
