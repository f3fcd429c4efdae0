/**
 * The first key that one object of a text in JSON has twice. The text must be well-formed. It is walked sign by sign, because an
 * expression for strings runs out of stack in a long one.
 */
export function repeatedKey(text: string): string | undefined {
  /** Keys of the objects that are open; `undefined` stands for a list. */
  const open: (Set<string> | undefined)[] = [];
  let awaitsKey = false;
  for (let index = 0; index < text.length; index++) {
    const sign = text[index];
    if (sign === '"') {
      const end = stringEnd(text, index);
      const keys = open.at(-1);
      if (awaitsKey && keys) {
        const key = String(JSON.parse(text.slice(index, end + 1)));
        if (keys.has(key)) return key;
        keys.add(key);
        awaitsKey = false;
      }
      index = end;
    } else if (sign === '{') {
      open.push(new Set());
      awaitsKey = true;
    } else if (sign === '[') {
      open.push(undefined);
      awaitsKey = false;
    } else if (sign === '}' || sign === ']') open.pop();
    else if (sign === ',') awaitsKey = true;
  }
  return undefined;
}

function stringEnd(text: string, start: number): number {
  let index = start + 1;
  while (text[index] !== '"') index += text[index] === '\\' ? 2 : 1;
  return index;
}
