import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { ADML_TEXT, ADMX_TEXT, FILES } from '../helpers/admx-profile.ts';
import { whyNoIndependentPrograms } from '../helpers/proof/program.ts';

const XMLLINT = 'xmllint';

function againstRules(text: string): string {
  const ran = spawnSync(XMLLINT, ['--noout', '--nonet', '--schema', 'test/helpers/admx.xsd', '-'], { input: text });
  return ran.status === 0 ? '' : ran.stderr.toString();
}

describe.skipIf(whyNoIndependentPrograms([XMLLINT]) !== undefined)('the format rules', () => {
  test('are satisfied', () => {
    for (const [path, text] of FILES) expect([path, againstRules(text)]).toEqual([path, '']);
  });

  test.each<[string, string, (text: string) => string]>([
    ['a category that does not exist', 'admx', (text) => text.replace('ref="Locked_kubernetes"', 'ref="Locked_none"')],
    [
      'a system that does not exist',
      'admx',
      (text) => text.replace('ref="SUPPORTED_RancherDesktop"', 'ref="SUPPORTED"'),
    ],
    ['two policies of one name', 'admx', (text) => text.replace('name="Defaults_Version"', 'name="Locked_Version"')],
    ['two categories of one name', 'admx', (text) => text.replace('name="Defaults_images"', 'name="Locked_images"')],
    ['a name with a dot', 'admx', (text) => text.replace('name="Locked_Version"', 'name="Locked.Version"')],
    ['a key with a backslash at its end', 'admx', (text) => text.replace(/(key="[^"]*)"/, '$1\\"')],
    ['a policy without a key', 'admx', (text) => text.replace(/ key="[^"]*"/, '')],
    ['a text in place of a reference', 'admx', (text) => text.replace('$(string.Locked)', 'Locked')],
    ['a number beyond 32 bits', 'admx', (text) => text.replace('maxValue="65535"', 'maxValue="4294967296"')],
    [
      'lists in front of values',
      'admx',
      (text) => text.replace(/(<enabledValue>.*?)(<enabledList>.*?<\/enabledList>)/s, '$2$1'),
    ],
    ['an empty list', 'admx', (text) => text.replace(/<enabledList>.*?<\/enabledList>/s, '<enabledList/>')],
    ['an element that does not exist', 'admx', (text) => text.replaceAll('multiText ', 'multiLine ')],
    ['a version without a dot', 'admx', (text) => text.replace('revision="19.0"', 'revision="19"')],
    ['another version of the format', 'adml', (text) => text.replace('schemaVersion="1.0"', 'schemaVersion="2.0"')],
    ['two texts of one id', 'adml', (text) => text.replace('<string id="Locked">', '<string id="Locked_Version">')],
    [
      'two presentations of one id',
      'adml',
      (text) => text.replaceAll('"Locked_kubernetes_port"', '"Locked_kubernetes_version"'),
    ],
    ['a control of no element', 'adml', (text) => text.replace(/ refId="[^"]*"/, '')],
    ['a combination box', 'adml', (text) => text.replaceAll('textBox', 'comboBox')],
    ['an empty text', 'adml', (text) => text.replace(/(<string id="Locked_Version">)[^<]*/, '$1')],
  ])('reject %s', (_, kind, change) => {
    const text = kind === 'admx' ? ADMX_TEXT : ADML_TEXT;
    const changed = change(text);
    expect(changed).not.toBe(text);
    expect(againstRules(changed)).toContain('fails to validate');
  });
});
