import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { admxFiles } from '../../profiles/formats/admx.ts';
import { fileWriter, GOLDEN } from '../helpers/proof/profiles.ts';
import { whyNoIndependentPrograms } from '../helpers/proof/program.ts';
import { readXmls, type XmlElement } from '../helpers/proof/python.ts';
import { againstSchema } from '../helpers/proof/xmllint.ts';

describe.skipIf(whyNoIndependentPrograms() !== undefined)(
  'administrative templates, as xmllint and Python read them',
  () => {
    const written = fileWriter();
    const SCHEMA = 'test/helpers/admx.xsd';

    function template(): [admx: string, adml: string] {
      const [admx = '', adml = ''] = admxFiles().flatMap(({ path, text }) => written([text], extname(path)));
      return [admx, adml];
    }

    test('follow the schema, and so do the golden ones', () => {
      const paths = [...template(), join(GOLDEN, 'RancherDesktop.admx'), join(GOLDEN, 'en-US/RancherDesktop.adml')];
      expect(againstSchema(SCHEMA, paths)).toBe('');
    });

    test('have a text for every reference, and every policy writes the version', () => {
      const [admx, adml] = readXmls(template()).map((each) => ('value' in each ? each.value : undefined));
      if (!admx || !adml) throw new Error('Python cannot read the template');
      for (const kind of ['string', 'presentation']) {
        const texts = elements(adml, kind).map(({ attributes }) => attributes.id);
        expect(new Set(texts).size).toBe(texts.length);
        const references = everyAttribute(admx).flatMap(
          (text) => new RegExp(`^\\$\\(${kind}\\.(.*)\\)$`).exec(text)?.[1] ?? [],
        );
        expect(references.length).toBeGreaterThan(20);
        expect(references.filter((name) => !texts.includes(name))).toEqual([]);
      }
      const policies = elements(admx, 'policy');
      expect(policies.length).toBeGreaterThan(50);
      for (const policy of policies) {
        const root = /^SOFTWARE\\Policies\\Rancher Desktop\\(?:Locked|Defaults)/.exec(policy.attributes.key ?? '')?.[0];
        expect(root).toBeDefined();
        // A disabled policy writes values as well, where it defines them.
        const sides = ['enabled', ...(elements(policy, 'disabledValue').length > 0 ? ['disabled'] : [])];
        for (const side of sides) {
          const { name } = policy.attributes;
          expect([name, side, versionWritten(policy, side, root)]).toEqual([name, side, '19']);
        }
      }
    });

    test('that are broken fail these checks', () => {
      const [admx] = template();
      const right = readFileSync(admx, 'utf8');
      for (const [sign, broken] of [
        [' class="Both"', ''],
        ['<decimal value="19"/>', '<decimal value="nineteen"/>'],
        ['<categories>', '<categories><folder name="a"/>'],
      ] as const) {
        const text = right.replace(sign, broken);
        expect(text).not.toBe(right);
        expect(againstSchema(SCHEMA, written([text], '.admx'))).not.toBe('');
      }
    });
  },
);

/** The profile version that a policy writes when it is `enabled` or `disabled`. */
function versionWritten(policy: XmlElement, side: string, root: string | undefined): string | undefined {
  const items = elements(policy, `${side}List`).flatMap((list) => elements(list, 'item'));
  const own = elements(policy, `${side}Value`).map((value) => ({ ...value, attributes: policy.attributes }));
  const version = [...items, ...own].find(
    ({ attributes }) => attributes.key === root && attributes.valueName === 'version',
  );
  return version && elements(version, 'decimal')[0]?.attributes.value;
}

function elements(element: XmlElement, tag: string): XmlElement[] {
  const below = element.children.flatMap((child) => elements(child, tag));
  return element.tag === tag ? [element, ...below] : below;
}

function everyAttribute(element: XmlElement): string[] {
  return [...Object.values(element.attributes), ...element.children.flatMap(everyAttribute)];
}
