import { COMPATIBLE } from '../../src/product.ts';
import type { Field } from '../../src/settings/field.ts';
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
  /** Below the folder that they are written to, with `/`: that of the texts is the name of their language. */
  path: string;
  /** UTF-8 with CRLF; written as it is. */
  text: string;
}

/**
 * Administrative templates for Group Policy and Intune: a policy for every lockable setting that the application on Windows
 * takes and that a policy can hold, once as locked and once as default; `admxExceptions` has the others. They come from the
 * schema alone, the same at every call.
 *
 * Each policy also writes the version of the settings, so that it is a valid profile when it is the only one. Format: the
 * ADMX schema in [MS-GPREG] 7 and the reference pages of Microsoft about its elements. What Intune takes (a file of at most
 * 1 MB, no combination box, texts in `en-us`, no namespace that is not there yet) is from its page about the import of
 * ADMX files. Neither the Group Policy editor nor Intune has been tried.
 */
export function admxFiles(): readonly AdmxFile[] {
  return [
    { path: 'RancherDesktop.admx', text: xmlDocument(definitions()) },
    { path: 'en-US/RancherDesktop.adml', text: xmlDocument(resources()) },
  ];
}

/** Namespace of both kinds of files, as the ones that come with Windows have it. */
const XMLNS = 'http://schemas.microsoft.com/GroupPolicy/2006/07/PolicyDefinitions';
/** Grows with the settings version, so that texts of an older version are not taken for these policies. */
const REVISION = `${SCHEMA_VERSION}.0`;
/** Ours: the makers of the application may publish a namespace of their own. */
const NAMESPACE = 'Rdctl.Policies.RancherDesktop';
/** Characters of a text and of a list; without a number tools take 1023. */
const MAX_TEXT = 1023;
const MAX_LIST = 1_000_000;

/** The definitions of all policies, without any text for people. */
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

function choices(field: Field, values: readonly string[]): Element[] {
  return values.map((value) =>
    element('item', { displayName: stringReference(choiceId(field, value)) }, [
      element('value', {}, [element('string', {}, value)]),
    ]),
  );
}

const PART_TITLES: Readonly<Record<Part, string>> = { locked: 'Locked', defaults: 'Defaults' };

/** The English texts of the policies, and what is asked for when one is enabled. */
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

/** Once for both parts. */
function choiceStrings(): Element[] {
  const ofOnePart = policies().filter(({ part }) => part === PARTS[0]);
  return ofOnePart.flatMap(({ field }) => (field.enum ?? []).map((value) => string(choiceId(field, value), value)));
}

function string(id: string, text: string): Element {
  return element('string', { id }, text);
}

/** No combination box: Intune refuses a file with one. */
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

/** The category above all others, and the text of its name. */
const ROOT = 'RancherDesktop';
const SUPPORTED_ID = 'SUPPORTED_RancherDesktop';

/** The names of policies and categories are also the ids of their texts; helps have their own. */
function helpId(name: string): string {
  return `${name}_Help`;
}

/** Has no small letter after the part, which the first name of every setting has. */
function versionPolicyName(part: Part): string {
  return `${PART_NAMES[part]}_Version`;
}

function choiceId({ path }: Field, value: string): string {
  return `Choice_${path}_${value}`.replaceAll(/[^A-Za-z0-9]/g, '_');
}

function stringReference(id: string): string {
  return `$(string.${id})`;
}
