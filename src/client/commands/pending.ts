import type { KubeObject } from '../../api/object.ts';
import { formatTime } from '../../kit/clock.ts';
import { requestResource, typeNames } from '../access-requests.ts';
import { awaitedDecision, choicesOf, type Decision } from '../choices.ts';
import { searchedText } from '../cluster-connection.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';
import { askedPodOf, expectedDuration } from '../details.ts';
import { awaitedExtension, latestEnd } from '../extension-text.ts';
import { outputForm, Printer } from '../output.ts';
import { printPages } from '../pages.ts';
import { readyOf, specOf, stateOf, statusOf } from '../request-state.ts';
import { requestTable } from '../request-table.ts';
import { span } from '../times.ts';

export const pending: Command = {
  name: 'pending',
  summary: 'List the requests that wait for your decision',
  details:
    'Lists the requests of others on whose template you hold the verb approve, and that wait for an approval of access or of an extension, or for the review of an emergency. ABOUT names the decision and, for access, also the asked pod and start time, and the code of a template that is not ready. FOR is, for an extension, how much longer, and until when at the latest; for a review, until when access lasts. DECIDE BY is when the server denies the request, when access ends without the extension, or when the review is due. A request that was deleted before its review is not listed: review it with approve NAME --about Review. YOU CAN says whether you can approve, or only deny, because you have approved already, or are in none of the groups that must approve.',
  examples: ['pending -A', 'show payments-shell-x7k2p'],
  async run({ args, io, clock, connect }) {
    const form = outputForm(args);
    const connection = await connect();
    const decisionOf = choicesOf(connection);
    const decisions = new WeakMap<KubeObject, Decision>();
    const table = requestTable({ who: true, namespaces: args.has('all-namespaces'), now: () => clock.now() });
    const columns = [
      ...table.columns.filter(({ title }) => !['POD', 'LEFT', 'STATE', 'UNTIL', 'REASON', 'WHY'].includes(title)),
      { title: 'ABOUT', text: (request: KubeObject) => aboutText(request, decisions.get(request)?.template) },
      {
        title: 'FOR',
        long: true,
        text: (request: KubeObject) => requestedDuration(request, decisions.get(request)?.template, clock.now()),
      },
      { title: 'DECIDE BY', long: true, text: decideBy },
      { title: 'YOU CAN', text: (request: KubeObject) => decisions.get(request)?.choice ?? '' },
      { title: 'REASON', text: (request: KubeObject) => requestedReason(request) },
    ];
    const printer = new Printer(io, form, { ...table, columns });
    const isAwaited = async (request: KubeObject): Promise<boolean> => {
      const decision = awaitedDecision(request) === undefined ? undefined : await decisionOf(request);
      if (decision !== undefined) decisions.set(request, decision);
      return decision !== undefined;
    };
    const resources = typeNames.map(requestResource);
    const count = await printPages(connection, resources, printer, isAwaited);
    if (count === 0) io.printError(`no request waits for you ${await searchedText(connection, resources)}\n`);
    return exits.done;
  },
};

const aboutText = (request: KubeObject, template: KubeObject | undefined): string => {
  const about = awaitedDecision(request) ?? '';
  if (about !== 'Access') return about;
  const [pod, { startAt = '' }] = [askedPodOf(request), specOf(request)];
  const ready = template && readyOf(template);
  const asked = [
    ...(pod === '' ? [] : [`pod ${pod}`]),
    ...(startAt === '' ? [] : [`from ${startAt}`]),
    ...(ready?.status === 'False' ? [`template not ready: ${ready.reason}`] : []),
  ];
  return asked.length === 0 ? about : `${about} (${asked.join(', ')})`;
};

/** How long access lasts, how much longer with an extension, or until when an emergency did. */
export function requestedDuration(request: KubeObject, template: KubeObject | undefined, nowMs: number): string {
  const extension = awaitedExtension(request);
  if (extension) {
    const end = template && latestEnd(request, extension, template, nowMs);
    return `${extension.by} more${end && 'endMs' in end ? `, until ${formatTime(end.endMs)}` : ''}`;
  }
  const { endsMs } = stateOf(request);
  if (endsMs !== undefined) return `until ${formatTime(endsMs)}`;
  const { duration } = specOf(request);
  const expected = expectedDuration(request, template);
  if (!expected) return duration ?? 'default';
  return `${span(expected.grantedMs)}${expected.clamped ? ` of ${duration}` : ''}`;
}

/** RFC 3339, or empty. An extension waits until access ends without it. */
export function decideBy(request: KubeObject): string {
  if (!awaitedExtension(request)) return statusOf(request).approval?.due ?? '';
  const { endsMs } = stateOf(request);
  return endsMs === undefined ? '' : formatTime(endsMs);
}

/** The reason of access is not that of an extension. */
const requestedReason = (request: KubeObject): string => (awaitedExtension(request) ?? specOf(request)).reason ?? '';
