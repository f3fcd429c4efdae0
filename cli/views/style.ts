import { styleText } from 'node:util';

/** Terminal emphasis. Words and signs carry the meaning; without color each function returns its text unchanged. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
}

type Format = Parameters<typeof styleText>[0];

export function style(color: boolean): Style {
  const paint = (format: Format) => (text: string) =>
    color ? styleText(format, text, { validateStream: false }) : text;
  return { bold: paint('bold'), dim: paint('dim'), good: paint('green'), warn: paint('yellow'), bad: paint('red') };
}
