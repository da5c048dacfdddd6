import { commands } from '../../src/client/commands.ts';
import { ownHelp, programHelp } from '../../src/client/help.ts';
import { page, table } from './markdown.ts';

export const commandsPage = (): string =>
  page(
    'Commands of the client',
    'src/client/commands',
    'The program is `drawbridge`, or `kubectl drawbridge` as a plugin of kubectl. See also [request access](../tasks/request-access.md) and [approve access](../tasks/approve-access.md). A `REQUEST` is its name, or `pod/NAME` or `exec/NAME` if both types have one. The server has [commands of its own](flags.md).',
    '## Exit codes',
    table(
      ['Code', 'Meaning'],
      [
        ['0', 'done'],
        ['1', 'failed'],
        ['2', 'wrong command line or kubeconfig'],
        ['3', 'denied: by RBAC, a policy, a webhook, or a person'],
        ['4', 'timed out waiting; the request still waits'],
        [
          '5',
          'access has ended. If the server has deleted the request, usually one that was created with `--name`, the code is 1',
        ],
        ['130', 'interrupted; the request still waits'],
      ],
    ),
    '`exec` and `request --exec` exit with the code of the command in the pod.',
    '## All commands, and common flags',
    fenced(programHelp(commands, program).trimEnd()),
    ...commands.flatMap((command) => [`## ${command.name}`, fenced(ownHelp(command, program).join('\n'))]),
  );

const program = 'drawbridge';
const fenced = (text: string): string => `\`\`\`text\n${text}\n\`\`\``;
