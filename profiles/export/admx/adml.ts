import { COMPATIBLE } from '../../../src/product.ts';
import { SCHEMA_VERSION } from '../../../src/settings/settings.gen.ts';
import { PARTS, type Part } from '../../deployment/part.ts';
import { REVISION, XMLNS } from './admx.ts';
import { defaultOnWindows, PART_HELP, policyHelp, SUPPORTED, VERSION_HELP } from './help.ts';
import { choiceId, helpId, ROOT, SUPPORTED_ID, versionPolicyName } from './names.ts';
import { categoryName, PART_NAMES, type Policy, policies, sectionNames } from './policies.ts';
import { type Element, element } from './xml.ts';

const PART_TITLES: Readonly<Record<Part, string>> = { locked: 'Locked', defaults: 'Defaults' };

/** The English texts of the policies, and what is asked for when one is enabled. */
export function resources(): Element {
  return element('policyDefinitionResources', { xmlns: XMLNS, revision: REVISION, schemaVersion: '1.0' }, [
    element('displayName', {}, `${COMPATIBLE.productName} deployment profiles`),
    element(
      'description',
      {},
      `Locked and default settings of ${COMPATIBLE.productName}, settings version ${SCHEMA_VERSION}.`,
    ),
    element('resources', {}, [
      element('stringTable', {}, strings()),
      element(
        'presentationTable',
        {},
        policies().flatMap((policy) => (policy.field.type === 'boolean' ? [] : [presentation(policy)])),
      ),
    ]),
  ]);
}

function strings(): Element[] {
  const sections = sectionNames();
  return [
    string(ROOT, COMPATIBLE.productName),
    string(SUPPORTED_ID, SUPPORTED),
    ...PARTS.flatMap((part) => [
      string(PART_NAMES[part], PART_TITLES[part]),
      string(helpId(PART_NAMES[part]), PART_HELP[part]),
      ...sections.map((section) => string(categoryName(part, section), section)),
      string(versionPolicyName(part), `Version of the profile (${part})`),
      string(helpId(versionPolicyName(part)), VERSION_HELP),
    ]),
    ...policies().flatMap((policy) => [
      string(policy.name, `${policy.field.path} (${policy.part})`),
      string(helpId(policy.name), policyHelp(policy)),
    ]),
    ...choiceStrings(),
  ];
}

/** Once for both parts. */
function choiceStrings(): Element[] {
  const ofOnePart = policies().filter(({ part }) => part === PARTS[0]);
  return ofOnePart.flatMap(({ field }) => (field.enum ?? []).map((value) => string(choiceId(field, value), value)));
}

function string(id: string, text: string): Element {
  return element('string', { id }, text);
}

/** No combination box: Intune refuses a file with one. */
function presentation({ name, field }: Policy): Element {
  const { enum: values, path, type } = field;
  const initial = defaultOnWindows(field);
  const refId = { refId: name };
  const shown = (...controls: Element[]) => element('presentation', { id: name }, controls);
  if (values) {
    const defaultItem = values.indexOf(String(initial));
    return shown(element('dropdownList', { ...refId, noSort: 'true', defaultItem }, `${path}:`));
  }
  switch (type) {
    case 'integer':
      return shown(element('decimalTextBox', { ...refId, defaultValue: Number(initial) }, `${path}:`));
    case 'string[]':
      return shown(
        element('text', {}, `${path}, one per line:`),
        element('multiTextBox', { ...refId, defaultHeight: 8 }),
      );
    case 'map<string,boolean>':
    case 'map<string,string>':
      return shown(element('listBox', refId, `${path}:`));
    case 'string':
    case 'boolean':
      return shown(element('textBox', refId, [element('label', {}, `${path}:`), ...defaultText(String(initial))]));
  }
}

function defaultText(value: string): Element[] {
  return value === '' ? [] : [element('defaultValue', {}, value)];
}
