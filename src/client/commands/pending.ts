import type { RequestSpec } from '../../api/access/kinds.ts';
import { recordingLostCondition } from '../../api/access/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { requestResource, typeNames } from '../access-requests.ts';
import { awaitedDecision, type Choice, choicesOf } from '../choices.ts';
import { searchedText } from '../cluster-connection.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { outputForm, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { conditionsOf, specOf } from '../request-state.ts';
import { requestTable } from '../request-table.ts';

export const pending: Command = {
  name: 'pending',
  summary: 'List the requests that wait for your decision',
  details:
    'Lists requests of others that wait for approvals of access, of an extension, or for the review of an emergency, and on whose template you hold the verb approve. YOU CAN says whether you can approve, or only deny, because you have approved already, or are in none of the groups that must approve.',
  examples: ['pending -A', 'show payments-shell-x7k2p'],
  async run({ args, io, clock, connect }) {
    const form = outputForm(args);
    const connection = await connect();
    const choiceOf = choicesOf(connection);
    const choices = new WeakMap<KubeObject, Choice>();
    const table = requestTable({ who: true, namespaces: args.has('all-namespaces'), now: () => clock.now() });
    const columns = [
      ...table.columns.filter(({ title }) => !['POD', 'LEFT', 'STATE', 'UNTIL', 'REASON', 'WHY'].includes(title)),
      { title: 'ABOUT', text: (request: KubeObject) => aboutText(request) },
      { title: 'FOR', text: (request: KubeObject) => requestedDuration(request) },
      { title: 'YOU CAN', text: (request: KubeObject) => choices.get(request) ?? '' },
      { title: 'REASON', text: (request: KubeObject) => requestedReason(request) },
    ];
    const printer = new Printer(io, form, { ...table, columns });
    const isAwaited = async (request: KubeObject): Promise<boolean> => {
      const choice = awaitedDecision(request) === undefined ? undefined : await choiceOf(request);
      if (choice !== undefined) choices.set(request, choice);
      return choice !== undefined;
    };
    const count = await printPages(connection, typeNames.map(requestResource), printer, isAwaited);
    if (count === 0) io.printError(`no request waits for you ${searchedText(connection)}\n`);
    return exits.done;
  },
};

const extensionIn = (request: KubeObject): NonNullable<RequestSpec['extensions']>[number] | undefined => {
  const [, number] = /^Extension-(\d+)$/.exec(awaitedDecision(request) ?? '') ?? [];
  return number === undefined ? undefined : specOf(request).extensions?.[Number(number) - 1];
};
const aboutText = (request: KubeObject): string => {
  const about = awaitedDecision(request) ?? '';
  const isLost = conditionsOf(request).some(({ type }) => type === recordingLostCondition);
  return about === 'Review' && isLost ? `${about} (${recordingLostCondition})` : about;
};
const requestedDuration = (request: KubeObject): string =>
  extensionIn(request)?.by ?? specOf(request).duration ?? 'default';
const requestedReason = (request: KubeObject): string => extensionIn(request)?.reason ?? specOf(request).reason ?? '';
