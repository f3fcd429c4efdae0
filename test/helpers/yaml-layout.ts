import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';

/** Random decisions, one after the other. */
export type Dice = (sides: number) => number;

/** A text with its comments, all of them different. */
export interface Written {
  text: string;
  comments: readonly string[];
}

/** Finds the comments written by `writtenAs`, whatever became of the rest. */
export const COMMENT = /# c\d+(?: a: b| "q| it's| \{| #)?/g;

/** The settings as YAML in one of many styles, with comments everywhere they fit. */
export function writtenAs(value: JsonValue, dice: Dice, column: number, step: number, eol: string): Written {
  let count = 0;
  const comments: string[] = [];
  /** The anchor of a value that was written earlier. */
  const aliases = new Map<string, string>();
  const pad = (at: number) => ' '.repeat(at);
  const next = () => {
    count += 1;
    return count;
  };
  const remark = () => {
    const comment = `# c${next()}${['', ' a: b', ' "q', " it's", ' {', ' #'][dice(6)]}`;
    comments.push(comment);
    return comment;
  };
  const scalar = (text: JsonValue, flow: boolean): string => {
    if (typeof text !== 'string') return JSON.stringify(text);
    const plain = /^[a-z][a-z./-]*$/.test(text) && !/^(true|false|null)$/.test(text);
    if (plain && dice(2) === 0) return text;
    if (dice(2) === 0 && /^[^'\n]*$/.test(text)) return `'${text}'`;
    return flow || dice(2) === 0 ? JSON.stringify(text) : JSON.stringify(text);
  };
  const key = (name: string) =>
    /^[a-zA-Z0-9]+$/.test(name) && /[a-z]/i.test(name[0] ?? '') && dice(3) > 0
      ? name
      : dice(2)
        ? JSON.stringify(name)
        : `'${name}'`;
  const flow = (inner: JsonValue, at: number): string => {
    const many = dice(3) === 0;
    const gap = many ? `${eol}${pad(at + step)}` : ['', ' '][dice(2)];
    const close = many ? `${eol}${pad(at + 1)}` : gap;
    if (Array.isArray(inner)) {
      return `[${inner.map((each) => `${gap}${many && dice(3) === 0 ? `${remark()}${gap}` : ''}${scalar(each, true)}`).join(',')}${inner.length > 0 && dice(3) === 0 ? ',' : ''}${close}]`;
    }
    if (!isObject(inner)) return scalar(inner, true);
    const members = Object.entries(inner).map(([name, each]) => {
      const above = many && dice(3) === 0 ? `${gap}${remark()}` : '';
      return `${above}${gap}${key(name)}: ${flow(each, at + step)}`;
    });
    const text = members.map((member, index) => {
      const comma = index < members.length - 1 || dice(3) === 0 ? ',' : '';
      return `${member}${comma}${many && dice(3) === 0 ? ` ${remark()}` : ''}`;
    });
    return `{${text.join('')}${close}}`;
  };
  const block = (inner: JsonObject, at: number): string =>
    Object.entries(inner)
      .map(([name, each]) => {
        const above = [
          ...(dice(5) === 0 ? [eol] : []),
          ...(dice(3) === 0 ? [`${pad(at)}${remark()}${eol}`] : []),
          ...(dice(8) === 0 ? [`${pad(Math.max(0, at - 1))}${remark()}${eol}`] : []),
          ...(dice(8) === 0 ? [eol, `${pad(at)}${remark()}${eol}`] : []),
        ].join('');
        const behind = dice(3) === 0 ? ` ${remark()}` : '';
        const below = () => (dice(8) === 0 ? `${pad(at + 1)}${remark()}${eol}` : '');
        const head = `${above}${pad(at)}${dice(20) === 0 ? `? ${key(name)}${eol}${pad(at)}:` : `${key(name)}:`}`;
        const anchor = dice(4) === 0 ? ` &a${next()}` : '';
        if (isObject(each) && Object.keys(each).length > 0 && dice(5) > 0) {
          return `${head}${anchor}${behind}${eol}${block(each, at + step)}${below()}`;
        }
        if (Array.isArray(each) && each.length > 0 && dice(2) === 0) {
          const items = each.map(
            (item) =>
              `${dice(4) === 0 ? `${pad(at)}${remark()}${eol}` : ''}${pad(at)}- ${scalar(item, false)}${dice(4) === 0 ? ` ${remark()}` : ''}${eol}`,
          );
          return `${head}${anchor}${behind}${eol}${items.join('')}${below()}`;
        }
        if (typeof each === 'string' && /^[a-z]+\n[a-z]+\n$/.test(each) && dice(2) === 0) {
          return `${head}${anchor} |${behind}${eol}${each
            .trimEnd()
            .split('\n')
            .map((line) => `${pad(at + step)}${line}${eol}`)
            .join('')}`;
        }
        const written = JSON.stringify(each);
        const alias = aliases.get(written);
        if (alias !== undefined && dice(2) === 0) return `${head} *${alias}${behind}${eol}${below()}`;
        if (anchor !== '') aliases.set(written, anchor.slice(2));
        const between = dice(12) === 0 ? `${behind}${eol}${pad(at + step)}` : ' ';
        return `${head}${anchor}${between}${flow(each, at)}${between === ' ' ? behind : ''}${eol}${below()}`;
      })
      .join('');
  if (!isObject(value)) return { text: '', comments };
  const text =
    dice(6) === 0
      ? `${flow(value, column)}${eol}`
      : `${block(value, column)}${dice(3) === 0 ? `${pad(column)}${remark()}${eol}` : ''}`;
  return { text, comments };
}

export function diceOf(numbers: readonly number[]): Dice {
  let at = 0;
  return (sides) => {
    at += 1;
    return (numbers[at % numbers.length] ?? 0) % sides;
  };
}
