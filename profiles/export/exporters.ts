import type { Exporter } from './exporter.ts';

/** Every format that settings are exported to, loaded when it is asked for. One line each. */
export const EXPORTERS: Readonly<Record<string, () => Promise<Exporter>>> = {
  plist: async () => (await import('./plist.ts')).plistExporter,
  mobileconfig: async () => (await import('./mobileconfig.ts')).mobileconfigExporter,
  json: async () => (await import('./json.ts')).jsonExporter,
  reg: async () => (await import('./reg.ts')).regExporter,
};
