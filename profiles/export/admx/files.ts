import { resources } from './adml.ts';
import { definitions } from './admx.ts';
import { xmlDocument } from './xml.ts';

export interface AdmxFile {
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
