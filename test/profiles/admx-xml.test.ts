import { expect, test } from 'vitest';
import { element, xmlDocument } from '../../profiles/formats/xml.ts';
import { parseXml } from '../helpers/xml.ts';

test.each(['a & b', '&amp;', '<a>', ']]>', '"quoted" \'too\'', 'ü😀'])(
  '%s survives a round trip, also in an attribute',
  (text) => {
    const { attributes, children } = parseXml(xmlDocument(element('a', { b: text }, [element('c', {}, text)])));
    expect([attributes.b, children.map((child) => child.text)]).toEqual([text, [text]]);
  },
);
