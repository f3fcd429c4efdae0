import type { Field } from '../../../src/settings/field.ts';
import { SCHEMA_VERSION } from '../../../src/settings/settings.gen.ts';
import { PARTS, type Part } from '../../deployment/part.ts';
import { MOST_DWORD } from '../registry-limits.ts';
import { choiceId, helpId, ROOT, SUPPORTED_ID, stringReference, versionPolicyName } from './names.ts';
import { categoryName, PART_NAMES, type Policy, policies, profileKey, sectionNames } from './policies.ts';
import { type Element, element } from './xml.ts';

/** Namespace of both kinds of files, as the ones that come with Windows have it. */
export const XMLNS = 'http://schemas.microsoft.com/GroupPolicy/2006/07/PolicyDefinitions';
/** Grows with the settings version, so that texts of an older version are not taken for these policies. */
export const REVISION = `${SCHEMA_VERSION}.0`;
/** Ours: the makers of the application may publish a namespace of their own. */
const NAMESPACE = 'Rdctl.Policies.RancherDesktop';
/** Characters of a text and of a list; without a number tools take 1023. */
const MOST_TEXT = 1023;
const MOST_LIST = 1_000_000;

/** The definitions of all policies, without any text for people. */
export function definitions(): Element {
  return element('policyDefinitions', { xmlns: XMLNS, revision: REVISION, schemaVersion: '1.0' }, [
    element('policyNamespaces', {}, [element('target', { prefix: 'rdctl', namespace: NAMESPACE })]),
    element('resources', { minRequiredRevision: REVISION }),
    element('supportedOn', {}, [
      element('definitions', {}, [
        element('definition', { name: SUPPORTED_ID, displayName: stringReference(SUPPORTED_ID) }),
      ]),
    ]),
    element('categories', {}, categories()),
    element('policies', {}, [...PARTS.map(versionPolicy), ...policies().map(policyElement)]),
  ]);
}

function categories(): Element[] {
  const sections = sectionNames();
  return [
    element('category', { name: ROOT, displayName: stringReference(ROOT) }),
    ...PARTS.flatMap((part) => [
      category(PART_NAMES[part], ROOT, helpId(PART_NAMES[part])),
      ...sections.map((section) => category(categoryName(part, section), PART_NAMES[part])),
    ]),
  ];
}

function category(name: string, parent: string, help?: string): Element {
  const texts = { displayName: stringReference(name), ...(help ? { explainText: stringReference(help) } : {}) };
  return element('category', { name, ...texts }, [element('parentCategory', { ref: parent })]);
}

/** The one policy of a part that is about no setting: it shows whether the version is there, and brings it back. */
function versionPolicy(part: Part): Element {
  return element('policy', { ...policyAttributes(versionPolicyName(part), profileKey(part)), valueName: 'version' }, [
    element('parentCategory', { ref: PART_NAMES[part] }),
    element('supportedOn', { ref: SUPPORTED_ID }),
    element('enabledValue', {}, [decimal(SCHEMA_VERSION)]),
    element('disabledValue', {}, [decimal(SCHEMA_VERSION)]),
  ]);
}

/**
 * Both lists write the version: what has only a list for Enabled takes its values away when it is disabled, and those of
 * the other policies would stay behind without a version.
 */
function policyElement(policy: Policy): Element {
  const { name, part, key, valueName, category: parent, needs } = policy;
  const isSwitch = policy.field.type === 'boolean';
  const own = isSwitch ? { valueName } : { presentation: `$(presentation.${name})` };
  const version = item(profileKey(part), 'version', SCHEMA_VERSION);
  const needed = needs.map((each) => item(each.key, each.valueName, 1));
  const states = [element('enabledValue', {}, [decimal(1)]), element('disabledValue', {}, [decimal(0)])];
  return element('policy', { ...policyAttributes(name, key), ...own }, [
    element('parentCategory', { ref: parent }),
    element('supportedOn', { ref: SUPPORTED_ID }),
    ...(isSwitch ? states : []),
    element('enabledList', {}, [version, ...needed]),
    element('disabledList', {}, [version]),
    ...(isSwitch ? [] : [element('elements', {}, [valueElement(policy)])]),
  ]);
}

function policyAttributes(name: string, key: string): Element['attributes'] {
  const texts = { displayName: stringReference(name), explainText: stringReference(helpId(name)) };
  return { name, class: 'Both', ...texts, key };
}

function item(key: string, valueName: string, value: number): Element {
  return element('item', { key, valueName }, [element('value', {}, [decimal(value)])]);
}

function decimal(value: number): Element {
  return element('decimal', { value });
}

function valueElement({ name, key, valueName, field }: Policy): Element {
  const { type, min = 0, max = MOST_DWORD } = field;
  const own = { id: name, valueName, required: 'true' };
  if (field.enum) return element('enum', own, choices(field, field.enum));
  switch (type) {
    case 'integer':
      return element('decimal', { ...own, minValue: min, maxValue: Math.min(max, MOST_DWORD) });
    case 'string[]':
      return element('multiText', { ...own, maxLength: MOST_LIST });
    case 'map<string,boolean>':
    case 'map<string,string>':
      return element('list', { id: name, key: `${key}\\${valueName}`, explicitValue: 'true' });
    case 'string':
    case 'boolean':
      return element('text', { ...own, maxLength: MOST_TEXT });
  }
}

function choices(field: Field, values: readonly string[]): Element[] {
  return values.map((value) =>
    element('item', { displayName: stringReference(choiceId(field, value)) }, [
      element('value', {}, [element('string', {}, value)]),
    ]),
  );
}
