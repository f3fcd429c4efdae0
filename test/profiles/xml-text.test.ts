import { expect, test } from 'vitest';
import { xmlProblem } from '../../profiles/formats/xml.ts';
import { isXmlText } from '../helpers/hostile-text.ts';

test('exactly the UTF-16 units that XML does not have are refused', () => {
  const units = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code));
  expect(units.filter((unit) => (xmlProblem(unit) === undefined) !== isXmlText(unit))).toEqual([]);
});

test.each(['😀', '\u{1fffe}', '\u{10ffff}', '\u0085\u2028'])('%j is accepted', (text) => {
  expect(xmlProblem(text)).toBeUndefined();
});
