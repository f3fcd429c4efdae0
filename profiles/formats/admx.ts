import { COMPATIBLE } from '../../src/product.ts';
import type { SettingField } from '../../src/settings/field.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import {
  type AdmxPolicy,
  categoryName,
  defaultOnWindows,
  PART_HELP,
  PART_NAMES,
  policies,
  policyHelp,
  profileKey,
  SUPPORTED,
  sectionNames,
  VERSION_HELP,
} from './admx-policies.ts';
import { PARTS, type Part } from './format.ts';
import { MAX_DWORD } from './registry.ts';
import { type Element, element, xmlDocument } from './xml.ts';

interface AdmxFile {
  /** Path below the output folder, with `/`; text files are in a folder named after their language. */
  path: string;
  /** Text with CRLF line ends, to be written as UTF-8, unchanged. */
  text: string;
}

/**
 * Administrative templates for Group Policy and Intune. Every lockable setting that the application supports on Windows and that a policy
 * can represent has two policies, one locked and one default; `admxExceptions` lists the other settings. The result is deterministic and
 * depends only on the schema.
 *
 * Each policy also writes the settings version, so that a single policy is already a valid profile. The format follows the ADMX schema in
 * [MS-GPREG] 7 and Microsoft's reference pages for its elements. The limits of Intune (files of at most 1 MB, no combo boxes, texts in
 * `en-us`, only namespaces that already exist) are those of its page about importing ADMX files. Neither the Group Policy editor nor Intune
 * has been tested.
 */
export function admxFiles(): readonly AdmxFile[] {
  return [
    { path: 'RancherDesktop.admx', text: xmlDocument(definitions()) },
    { path: 'en-US/RancherDesktop.adml', text: xmlDocument(resources()) },
  ];
}

/** XML namespace of both kinds of files, as in those shipped with Windows. */
const XMLNS = 'http://schemas.microsoft.com/GroupPolicy/2006/07/PolicyDefinitions';
/** Increases with the settings version, so that texts of an older version are not used for these policies. */
const REVISION = `${SCHEMA_VERSION}.0`;
/** Our own namespace, because the vendor of the application may publish templates too. */
const NAMESPACE = 'Rdctl.Policies.RancherDesktop';
/** Maximum characters of a text and of a list. Tools assume 1023 where no maximum is given. */
const MAX_TEXT = 1023;
const MAX_LIST = 1_000_000;

/** The definitions of all policies, without display texts. */
function definitions(): Element {
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

/** Returns the only policy of a part without a setting: it shows whether the version is present, and restores it. */
function versionPolicy(part: Part): Element {
  return element('policy', { ...policyAttributes(versionPolicyName(part), profileKey(part)), valueName: 'version' }, [
    element('parentCategory', { ref: PART_NAMES[part] }),
    element('supportedOn', { ref: SUPPORTED_ID }),
    element('enabledValue', {}, [decimal(SCHEMA_VERSION)]),
    element('disabledValue', {}, [decimal(SCHEMA_VERSION)]),
  ]);
}

/**
 * Builds a policy. Both its lists write the version: disabling a policy that only has an enabled list removes its values, which would leave the
 * values of other policies without a version.
 */
function policyElement(policy: AdmxPolicy): Element {
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

function valueElement({ name, key, valueName, field }: AdmxPolicy): Element {
  const { type, min = 0, max = MAX_DWORD } = field;
  const own = { id: name, valueName, required: 'true' };
  if (field.enum) return element('enum', own, choices(field, field.enum));
  switch (type) {
    case 'integer':
      return element('decimal', { ...own, minValue: min, maxValue: Math.min(max, MAX_DWORD) });
    case 'string[]':
      return element('multiText', { ...own, maxLength: MAX_LIST });
    case 'map<string,boolean>':
    case 'map<string,string>':
      return element('list', { id: name, key: `${key}\\${valueName}`, explicitValue: 'true' });
    case 'string':
    case 'boolean':
      return element('text', { ...own, maxLength: MAX_TEXT });
  }
}

function choices(field: SettingField, values: readonly string[]): Element[] {
  return values.map((value) =>
    element('item', { displayName: stringReference(choiceId(field, value)) }, [
      element('value', {}, [element('string', {}, value)]),
    ]),
  );
}

const PART_TITLES: Readonly<Record<Part, string>> = { locked: 'Locked', defaults: 'Defaults' };

/** The English texts of the policies, and their input controls. */
function resources(): Element {
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

/** The texts of enum values, which both parts share. */
function choiceStrings(): Element[] {
  const firstPartPolicies = policies().filter(({ part }) => part === PARTS[0]);
  return firstPartPolicies.flatMap(({ field }) =>
    (field.enum ?? []).map((value) => string(choiceId(field, value), value)),
  );
}

function string(id: string, text: string): Element {
  return element('string', { id }, text);
}

/** Builds the input controls of a policy, without combo boxes, because Intune rejects files with one. */
function presentation({ name, field }: AdmxPolicy): Element {
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

/** The top-level category, which is also the id of its text. */
const ROOT = 'RancherDesktop';
const SUPPORTED_ID = 'SUPPORTED_RancherDesktop';

/** Returns the id of a help text. The names of policies and categories are the ids of their display names. */
function helpId(name: string): string {
  return `${name}_Help`;
}

/** Returns the name of the version policy. It cannot collide with a setting's policy: no top-level section is called `Version`. */
function versionPolicyName(part: Part): string {
  return `${PART_NAMES[part]}_Version`;
}

function choiceId({ path }: SettingField, value: string): string {
  return `Choice_${path}_${value}`.replaceAll(/[^A-Za-z0-9]/g, '_');
}

function stringReference(id: string): string {
  return `$(string.${id})`;
}
