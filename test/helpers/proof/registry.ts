/** One registry value as another program returns it. */
export type RegistryValue =
  | { dword: number }
  | { text: string }
  | { texts: string[] }
  /** Any other type, or data that its type does not allow. */
  | { type: number; hex: string };

/** Keys by their full path, each with its values by name. */
export type RegistryReading = Map<string, Map<string, RegistryValue>>;

export interface RegistryExport {
  keys: RegistryReading;
  /** As the program wrote it. */
  file: Buffer;
}

/** The value of these bytes; strings must end as the registry ends them, with nothing after that. */
export function registryValue(type: number, data: Buffer): RegistryValue {
  const odd = { type, hex: data.toString('hex') };
  if (type === 4) return data.length === 4 ? { dword: data.readUInt32LE(0) } : odd;
  if (type !== 1 && type !== 7) return odd;
  const text = data.toString('utf16le');
  if (data.length % 2 !== 0 || !text.endsWith('\0')) return odd;
  if (type === 1) return text.indexOf('\0') === text.length - 1 ? { text: text.slice(0, -1) } : odd;
  if (text === '\0' || text === '\0\0') return { texts: [] };
  const texts = text.slice(0, -2).split('\0');
  return text.endsWith('\0\0') && !texts.includes('') ? { texts } : odd;
}

/** The bytes of `61,00,…`. */
export function hexBytes(digits: string): Buffer {
  return Buffer.from(digits.replaceAll(',', ''), 'hex');
}

/** Without the keys above that of the product. */
export function productKeys(keys: RegistryReading): RegistryReading {
  return new Map([...keys].filter(([key]) => /\\Policies\\Rancher Desktop/.test(key)));
}
