/** What a terminal acts on, what does not show, and half a surrogate pair. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/u;
const HIDDEN_UNITS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ud800-\udfff\ufffe\uffff]/gu;
const MOST_SIGNS = 80;

/** Dotted path of an entry of a map or of an unknown name, for messages: `WSL.integrations.Ubuntu`, `WSL.integrations["a\nb"]`. */
export function entryPath(path: string, key: string): string {
  if (key !== '' && key.length <= MOST_SIGNS && !HIDDEN.test(key)) return path === '' ? key : `${path}.${key}`;
  const short = key.length <= MOST_SIGNS ? key : `${key.slice(0, MOST_SIGNS)}…`;
  const shown = JSON.stringify(short).replace(HIDDEN_UNITS, (signs) =>
    Array.from({ length: signs.length }, (_, at) => `\\u${signs.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  );
  return `${path}[${shown}]`;
}
