/** Largest number of a DWORD. */
export const MOST_DWORD = 0xffff_ffff;
/** UTF-16 units that the name of a value may have here; the registry itself takes some more. */
const LONGEST_NAME = 255;
/** What a line of a registry file cannot hold: control characters and half surrogate pairs. */
export const UNWRITABLE = /[\p{Cc}\p{Cs}]/u;

/** Why a value cannot have that name, as what follows `its name`. */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'is empty, which is the name of the default value of a key';
  if (UNWRITABLE.test(name)) return 'holds a control character or half a surrogate pair';
  if (name.length > LONGEST_NAME) return `has more than ${LONGEST_NAME} UTF-16 units`;
  return undefined;
}

/** Why no DWORD holds a number, as a clause. */
export function numberProblem(value: number): string | undefined {
  const whole = Number.isInteger(value) && value >= 0 && value <= MOST_DWORD;
  return whole ? undefined : `a DWORD holds numbers from 0 to ${MOST_DWORD}`;
}

/** Why no REG_SZ holds a text, as a clause. */
export function textProblem(text: string): string | undefined {
  return text.includes('\0') ? 'a string ends at a NUL character' : undefined;
}

/** Why no REG_MULTI_SZ holds a text among its own, as a clause. */
export function entryProblem(entry: string): string | undefined {
  return entry === '' ? 'a list of strings ends at an empty one' : textProblem(entry);
}

/**
 * Names of one key, told apart as the registry does. To it some of them are one value, and the last would win: what either of the
 * two letter cases makes equal may be one name to the system, whose own table is older than either.
 */
export class ValueNames {
  readonly #first = new Map<string, string>();

  /** Adds a name; returns the one added last that differs from it in letter case alone. */
  add(name: string): string | undefined {
    const forms = [`lower ${name.toLowerCase()}`, `upper ${upperCase(name)}`];
    const known = forms.map((form) => this.#first.get(form)).find((other) => other !== undefined);
    for (const form of forms) this.#first.set(form, name);
    return known;
  }
}

/** Sign by sign, as the registry does: `ß` does not become two letters. */
function upperCase(name: string): string {
  return Array.from(name, (sign) => (sign.toUpperCase().length === sign.length ? sign.toUpperCase() : sign)).join('');
}
