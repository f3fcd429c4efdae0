import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import type { Platform } from '../../../src/settings/field.ts';
import { type Change, membersOf } from './changes.ts';
import { type Cut, comment, commentsOf, cut, drop, insert, setBody } from './edit-tree.ts';
import { type DocumentTree, readTree } from './read-tree.ts';
import {
  bodyText,
  type Collection,
  commentsIn,
  type Entry,
  flowText,
  indentation,
  type Layout,
  memberOf,
  quoted,
  quotesOf,
  textOf,
} from './text-tree.ts';

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
  /** Comments that went with what a change took out: each from its `#` on. */
  dropped: ReadonlyMap<Change, readonly string[]>;
}

/** A place on the way to a setting: the mapping, and its member there. */
interface Step {
  collection: Collection;
  entry: Entry;
}

/**
 * The text with the changes made and every other byte as it was. An edited `Document` of `yaml` cannot do that: it moves a comment
 * behind the name of a section to the next line, rewraps brackets, and changes indentation and spaces in lines that no change is
 * about. Undefined if the layout of the document has no place for a change; the caller verifies what the result means.
 */
export function rewritten(input: RewriteInput): Rewritten | undefined {
  const eol = input.text.includes('\r\n') ? '\r\n' : '\n';
  // The last line may lack its end, and another one may come behind it.
  const open = !input.text.endsWith('\n');
  const tree = readTree(open ? `${input.text}${eol}` : input.text, input.value);
  if (!tree) return undefined;
  const dropped = new Rewriter(tree, input, layoutOf(tree, input.text, eol)).run();
  if (!dropped) return undefined;
  const text = `${tree.before}${textOf(tree.root)}${tree.after}`;
  return { text: open && text.endsWith(eol) ? text.slice(0, -eol.length) : text, dropped };
}

function layoutOf({ root }: DocumentTree, text: string, eol: string): Layout {
  const brackets = root.style === 'flow';
  const step = stepOf(root) ?? (brackets && root.column > 0 ? root.column : 2);
  return { eol, step, pad: brackets && text.includes('\n\t') ? '\t' : ' ' };
}

class Rewriter {
  private readonly input: RewriteInput;
  private readonly layout: Layout;
  private readonly root: Collection | undefined;
  /** What came of the first member that left a section: comments about the section go there. */
  private readonly heirs = new Map<Entry, Step>();
  private readonly dropped = new Map<Change, string[]>();

  constructor({ root }: DocumentTree, input: RewriteInput, layout: Layout) {
    this.input = input;
    this.layout = layout;
    const settings = input.at === '' ? undefined : memberOf(root, 'settings');
    this.root = input.at === '' ? root : settings && sectionOf(settings, root, layout);
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
    const { collection, entry } = last;
    if (to !== undefined && after !== undefined && JSON.stringify(before) !== JSON.stringify(after)) {
      this.change(last, change, after);
    }
    if (to === from) return true;
    if (to === undefined) this.drop(change, last);
    else if (!this.move(cut(collection, entry), way, to)) return false;
    this.dropEmptied(change, way);
    return true;
  }

  /** Comments about something that is there no more would be read as being about what comes next. */
  private drop(change: Change, { collection, entry }: Step): void {
    const comments = drop(collection, entry, this.layout);
    if (comments.length > 0) this.dropped.set(change, [...(this.dropped.get(change) ?? []), ...comments]);
  }

  private change({ collection, entry }: Step, change: Change, after: JsonValue): void {
    entry.value = after;
    const { before } = change;
    const members =
      typeof entry.body !== 'string' && (isObject(before) || Array.isArray(before)) ? entry.body : undefined;
    if (members) {
      this.changeMembers(members, change);
      if (members.entries.length === 0) setBody(collection, entry, after, this.layout);
    } else {
      setBody(collection, entry, after, this.layout);
    }
  }

  private changeMembers(collection: Collection, change: Change): void {
    const members = membersOf(change, this.input.version, this.input.platform);
    for (const entry of [...collection.entries]) {
      const became = members.get(entry.name);
      if (!became) {
        this.drop(change, { collection, entry });
        continue;
      }
      if (became.name !== entry.name) entry.key = quoted(became.name, quotesOf(entry.key));
      if (JSON.stringify(became.value) !== JSON.stringify(entry.value))
        setBody(collection, entry, became.value, this.layout);
    }
  }

  private move(taken: Cut, way: readonly Step[], to: string): boolean {
    const names = to.split('.');
    const last = names.pop() ?? '';
    let collection = this.root;
    let made: Step | undefined;
    for (const name of names) {
      if (!collection) return false;
      const known = memberOf(collection, name);
      const entry: Entry = known ?? this.makeSection(collection, name, taken, way);
      if (!known) made ??= { collection, entry };
      collection = sectionOf(entry, collection, this.layout);
    }
    if (!collection) return false;
    const there = memberOf(collection, last);
    // The value at the older place counts, as for every reader.
    if (there) taken.comments.push(...commentsOf(cut(collection, there)));
    insert(collection, taken, last, this.layout, placeFor(collection, way, taken));
    const entry = memberOf(collection, last);
    for (const step of way.slice(0, -1)) {
      if (!this.heirs.has(step.entry) && entry) this.heirs.set(step.entry, made ?? { collection, entry });
    }
    return true;
  }

  /** A section that was missing comes where its first setting was. */
  private makeSection(collection: Collection, name: string, taken: Cut, way: readonly Step[]): Entry {
    const column = collection.column + this.layout.step;
    const flow = collection.style === 'flow';
    const space = !flow || collection.column >= 0 || !collection.entries[0]?.lead.startsWith(' ') ? '' : ' ';
    const body: Collection = {
      style: collection.style,
      list: false,
      column: flow && collection.column < 0 ? -1 : column,
      hanging: collection.hanging + this.layout.step,
      open: flow ? '{' : '',
      entries: [],
      end: flow
        ? collection.column < 0
          ? `${space}}`
          : `${this.layout.eol}${indentation(this.layout, collection.column)}}`
        : '',
      trailingComma: false,
    };
    const entry: Entry = { name, lead: '', open: '', key: '', colon: '', body: '', tail: '', post: '' };
    const { quotes, spaced } = taken;
    const section = { entry, comments: [], trailing: undefined, quotes, marks: '', column: 0, index: 0, spaced };
    insert(collection, section, name, this.layout, placeFor(collection, way, taken));
    const inserted = memberOf(collection, name) ?? entry;
    inserted.body = body;
    if (!flow) {
      inserted.colon = `:${this.layout.eol}`;
      inserted.tail = '';
    }
    return inserted;
  }

  /** Takes away the sections that lost their last member. */
  private dropEmptied(change: Change, way: readonly Step[]): void {
    for (const step of [...way.slice(0, -1)].reverse()) {
      const { collection, entry } = step;
      if (typeof entry.body === 'string' || entry.body.entries.length > 0) return;
      const heir = this.heirs.get(entry);
      if (heir) comment(heir.collection, heir.entry, commentsOf(cut(collection, entry)), this.layout);
      else this.drop(change, step);
    }
  }

  private wayTo(names: readonly string[]): Step[] | undefined {
    const way: Step[] = [];
    let collection = this.root;
    for (const [index, name] of names.entries()) {
      const entry = collection && memberOf(collection, name);
      if (!collection || !entry) return undefined;
      way.push({ collection, entry });
      if (index < names.length - 1) collection = sectionOf(entry, collection, this.layout);
    }
    return way;
  }
}

/** Where the value was, or the section that it was in; behind what was made there before. */
function placeFor({ entries }: Collection, way: readonly Step[], taken: Cut): number | undefined {
  const step = way.find(({ collection }) => collection.entries === entries);
  if (!step) return undefined;
  let at = step.entry === taken.entry ? taken.index : entries.indexOf(step.entry) + 1;
  while (entries[at]?.made) at += 1;
  return at;
}

/**
 * The members of a section. One that is written as an alias, or in a form that has no lines of its own, is written out; an empty
 * pair of brackets between lines becomes lines.
 */
function sectionOf(entry: Entry, around: Collection, layout: Layout): Collection {
  const block = around.style === 'block';
  const { body } = entry;
  if (typeof body !== 'string' && !(block && body.style === 'flow' && body.entries.length === 0)) return body;
  const comments = [...commentsIn(bodyText(body)), ...commentsIn(entry.colon), ...commentsIn(entry.tail)];
  const members = isObject(entry.value ?? null) && typeof body === 'string' ? Object.entries(entry.value ?? {}) : [];
  const column = block ? around.column + layout.step : -1;
  const written: Collection = {
    style: around.style,
    list: false,
    column,
    hanging: around.hanging + layout.step,
    open: block ? '' : '{',
    entries: members.map(([name, value]) => memberText(name, value, column, layout)),
    end: block ? '' : '}',
    trailingComma: false,
  };
  entry.body = written;
  // The two marks of an explicit name belong together.
  entry.open = entry.open.replace(/\?\s*/, '');
  entry.colon = block ? `:${marks(entry)}${layout.eol}` : `:${marks(entry)} `;
  entry.tail = '';
  comment(around, entry, comments, layout);
  return written;
}

function marks({ colon }: Entry): string {
  return (colon.match(/(?<=\s)&\S+/g) ?? []).map((mark) => ` ${mark}`).join('');
}

function memberText(name: string, value: JsonValue, column: number, { eol }: Layout): Entry {
  const block = column >= 0;
  return {
    name,
    lead: block ? '' : ' ',
    open: block ? ' '.repeat(column) : '',
    key: quoted(name, ''),
    colon: ': ',
    body: flowText(value, ''),
    tail: block ? eol : '',
    post: '',
    value,
  };
}

/** Columns between a mapping and the first one in it. */
function stepOf(collection: Collection): number | undefined {
  for (const { body } of collection.entries) {
    if (typeof body === 'string' || body.list) continue;
    const step = body.column - collection.column;
    if (collection.column >= 0 && step > 0) return step;
    const below = stepOf(body);
    if (below !== undefined) return below;
  }
  return undefined;
}
