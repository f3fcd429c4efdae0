/** Where a member of the outermost object stands in a JSON text. */
interface Member {
  key: string;
  /** Of the first character of the key, which is a quotation mark. */
  from: number;
  /** Behind the last character of the value. */
  to: number;
}

/**
 * The members of the outermost object, in order. The text must be JSON and an object; only then is the answer right.
 */
export function membersOf(text: string): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let key: { text: string; from: number } | undefined;
  let end = 0;
  const finish = () => {
    if (key) members.push({ key: key.text, from: key.from, to: end });
    key = undefined;
  };
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    if (depth === 1 && token === ',') finish();
    else if (depth === 0 && closes) finish();
    else if (depth === 1 && key === undefined && token.startsWith('"')) key = { text: JSON.parse(token), from: index };
    else end = index + token.length;
    if (token === '{' || token === '[') depth += 1;
  }
  return members;
}

/** Puts a member behind the last one, in the layout of the first. The rest of the text stays as it is. */
export function withMember(text: string, key: string, value: string): string {
  const members = membersOf(text);
  const first = members[0];
  const last = members.at(-1);
  const open = text.indexOf('{') + 1;
  const member = `${JSON.stringify(key)}: ${JSON.stringify(value)}`;
  if (!first || !last) return text.slice(0, open) + member + text.slice(open);
  return `${text.slice(0, last.to)},${text.slice(open, first.from)}${member}${text.slice(last.to)}`;
}

/** Takes a member out, with the comma that belongs to it. */
export function withoutMember(text: string, key: string): string {
  const members = membersOf(text);
  const at = members.findIndex((member) => member.key === key);
  const member = members[at];
  if (!member) return text;
  const before = members[at - 1];
  const after = members[at + 1];
  if (before) return text.slice(0, before.to) + text.slice(member.to);
  return text.slice(0, member.from) + text.slice(after?.from ?? member.to);
}

/** Gives a member that is there another value. */
export function withValue(text: string, key: string, value: string): string {
  const member = membersOf(text).find((each) => each.key === key);
  if (!member) return text;
  const whole = text.slice(member.from, member.to);
  const [head = ''] = /^"(?:[^"\\]|\\.)*"\s*:\s*/.exec(whole) ?? [];
  return text.slice(0, member.from) + head + JSON.stringify(value) + text.slice(member.to);
}
