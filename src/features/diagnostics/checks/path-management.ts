import { basename } from 'node:path';
import type { IntegrationOutcome } from '../../host-integration/outcome.ts';
import { type Check, type Finding, failed, passed } from '../check.ts';

/** The last result for each shell start-up file. */
export const pathManagement: Check = {
  id: 'PATH_MANAGEMENT',
  category: 'Utilities',
  followsSettings: true,
  applies: ({ platform }) => platform !== 'win32',
  async run({ integration }) {
    if (integration.offBecause !== undefined) {
      return [passed(`Shell start-up files are left alone, because ${integration.offBecause}.`)];
    }
    const outcomes = integration.integrationOutcomes().filter(({ part }) => part === 'path');
    return outcomes.map(findingOf);
  },
};

function findingOf({ file, state, message = 'the reason is not known' }: IntegrationOutcome): Finding {
  const sub = basename(file);
  switch (state) {
    case 'managed':
      return passed(`\`${file}\` puts the tools on the search path.`, sub);
    case 'clean':
      return passed(`Nothing of ours is in \`${file}\`, as the settings ask for.`, sub);
    case 'left':
      return passed(`\`${file}\` is left as it is: ${message}.`, sub);
    case 'failed':
      return failed(
        `\`${file}\` could not be edited: ${message}.`,
        [
          {
            description:
              'Mend what is named, then `rdctl set --application.path-management-strategy manual` and the same with `rcfiles`; or stay with `manual` and edit PATH yourself.',
          },
        ],
        sub,
      );
  }
}
