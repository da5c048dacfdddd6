import type { AccessEvent } from '../../api/notify/events.ts';
import { formatTime } from '../../kit/clock.ts';
import { printable } from '../../kit/printable.ts';
import { shellWord } from '../../kit/shell-word.ts';
import { shorten } from '../../kit/shorten.ts';
import type { Fact } from '../fact.ts';
import type { Message } from '../sink.ts';

/** What people read. Each text is one printable line, which may still look like markup. */
export interface MessageText {
  /** At most 150 characters. */
  readonly title: string;
  /** Each value has at most 500 characters. */
  readonly lines: readonly { readonly label: string; readonly value: string }[];
  /** Of a digest: its messages, at most 20 of at most 150 characters, and how many there are more. */
  readonly digest: readonly string[];
  /** The cluster and the time. */
  readonly footer: string;
  readonly link?: string;
  readonly command?: string;
}

const maxTitle = 150;
const maxValue = 500;
const maxDigestLines = 20;

/** Line breaks become spaces; other invisible characters become question marks. */
const oneLine = (text: string, max: number): string =>
  shorten(printable(text.replace(/[\s\u0085]+/gu, ' ').trim()), max);

export function textOf(message: Message): MessageText {
  const { facts, source, nowMs } = message;
  const [fact, ...others] = facts;
  const atMs = fact && others.length === 0 ? fact.atMs : nowMs;
  const text = { lines: [], digest: [], footer: `${oneLine(source, maxValue)}, ${timeText(atMs)}` };
  if (!fact) return { ...text, title: 'This is a test message of drawbridge' };
  if (others.length > 0) return { ...text, ...digestOf(facts, fact.request.namespace) };
  const link = linkTo(fact, message.linkBase);
  const command = commandFor(fact);
  const lines = linesOf(fact).flatMap(([label, value]) => (value ? [{ label, value: oneLine(value, maxValue) }] : []));
  return { ...text, title: titleOf(fact), lines, ...(link && { link }), ...(command && { command }) };
}

function digestOf(facts: readonly Fact[], namespace: string) {
  const hidden = facts.length - maxDigestLines;
  const titles = facts.slice(0, maxDigestLines).map(titleOf);
  const areRequests = facts.every(({ event }) => event === 'requested');
  const what = areRequests ? 'more requests wait for you' : 'more messages about access';
  const command = `kubectl drawbridge pending -n ${shellWord(namespace)}`;
  return {
    title: oneLine(`${facts.length} ${what} in ${namespace}`, maxTitle),
    digest: hidden > 0 ? [...titles, `and ${hidden} more`] : titles,
    ...(facts.some(({ event }) => awaited.has(event)) && { command }),
  };
}

/** They wait for the decision of a person. */
const awaited = new Set<AccessEvent>(['requested', 'extension.requested', 'review-owed', 'review-overdue']);

/** `2026-11-21 09:30 UTC`. */
const timeText = (ms: number): string => `${formatTime(ms).slice(0, 16).replace('T', ' ')} UTC`;

const unknownUser = 'an unknown user';
/** Long names leave room for the rest. */
const maxName = 60;
const nameIn = (text: string | undefined, absent: string): string => oneLine(text ?? '', maxName) || absent;

function titleOf(fact: Fact): string {
  const { request, votes, untilMs, session, end } = fact;
  const who = nameIn(fact.requester, unknownUser);
  const place = `in ${request.namespace}`;
  const target = fact.pod === undefined ? place : `to pod ${nameIn(fact.pod, '')} ${place}`;
  const until = untilMs === undefined ? '' : ` until ${timeText(untilMs)}`;
  const approver = nameIn(votes.findLast(({ decision }) => decision === 'Approve')?.voter, '');
  const denier = nameIn(end?.by, '');
  const titles: Record<AccessEvent, string> = {
    requested: `${who} asks for access ${place}`,
    approved: approver ? `${approver} approved access of ${who} ${place}` : `Access of ${who} ${place} was approved`,
    denied: denier ? `${denier} denied access of ${who} ${place}` : `Access of ${who} ${place} was denied`,
    granted: `${who} has access ${target}${until}`,
    emergency: `EMERGENCY: ${who} opened access ${target} without approval`,
    ending: `Access of ${who} ${target} ends${untilMs === undefined ? ' soon' : ` at ${timeText(untilMs)}`}`,
    extended: `Access of ${who} ${target} was extended${until}`,
    ended: `Access of ${who} ${target} ended`,
    'extension.requested': `${who} asks for more time ${place}`,
    'review-owed': `The emergency of ${who} ${place} needs a review`,
    'review-overdue': `The review of the emergency of ${who} ${place} is overdue`,
    'session.started': `${nameIn(session?.user, who)} started a session ${place}`,
    'session.ended': `A session of ${nameIn(session?.user, who)} ${place} ended`,
  };
  return oneLine(titles[fact.event], maxTitle);
}

const quoted = (reason: string | undefined): string => (reason ? `“${oneLine(reason, maxValue - 2)}”` : '');
const because = (reason: string | undefined): string => (reason ? `, ${quoted(reason)}` : '');

/** Empty values are left out. */
function linesOf(fact: Fact): [label: string, value: string][] {
  const { event, request, approvals, votes, untilMs, end, extension, reviewByMs, session } = fact;
  const approvalTexts = approvals.map(({ name, have, need, groups }) => {
    const from = groups.length === 0 ? '' : ` from ${groups.join(' or ')}`;
    return event === 'emergency' ? `${name} (${need}${from})` : `${name} ${have} of ${need}${from}`;
  });
  const voteTexts = votes.map(
    ({ voter, decision, reason }) =>
      `${decision === 'Approve' ? 'approved' : 'denied'} by ${nameIn(voter, unknownUser)}${because(reason)}`,
  );
  const endText = end ? `${end.how} (${end.code})${end.by ? ` by ${nameIn(end.by, '')}` : ''}` : '';
  return [
    ['Requester', fact.requester],
    ['Reason', quoted(fact.reason)],
    ['Permissions', fact.permissions.join(', ')],
    ['Pod', fact.pod ?? ''],
    ['Request', `${request.namespace}/${request.name} (${request.kind}), template ${fact.template}`],
    ['For', fact.duration ?? ''],
    [event === 'ended' ? 'Was open until' : 'Until', untilMs === undefined ? '' : timeText(untilMs)],
    ['Extension', extension ? `${extension.by} longer${because(extension.reason)}` : ''],
    [event === 'emergency' ? 'Skipped approvals' : 'Approvals', approvalTexts.join('; ')],
    ['Decisions', voteTexts.join('; ')],
    ['End', endText],
    ['Review by', reviewByMs === undefined ? '' : timeText(reviewByMs)],
    ['Session', session ? sessionText(session) : ''],
  ];
}

const sessionText = ({ name, user, stream, container, recording }: NonNullable<Fact['session']>): string =>
  `${stream} by ${nameIn(user, unknownUser)}${container === undefined ? '' : ` in container ${container}`}, ${name}, recording ${recording}`;

export function linkTo({ request }: Fact, linkBase: string | undefined): string | undefined {
  const path = [request.namespace, request.kind, request.name].map(encodeURIComponent).join('/');
  return linkBase && `${linkBase}/requests/${path}`;
}

/** Of the kubectl plugin: the verb, and flags. */
const commands: Partial<Record<AccessEvent, readonly [verb: string, flags: string]>> = {
  requested: ['approve', ''],
  'extension.requested': ['approve', ' --about Extension-'],
  'review-owed': ['approve', ' --about Review'],
  'review-overdue': ['approve', ' --about Review'],
  ending: ['extend', ' --by 30m'],
  granted: ['get', ''],
  emergency: ['get', ''],
  ended: ['get', ''],
};

/** Undefined if no command would help. */
export function commandFor({ event, request, extension }: Fact): string | undefined {
  const [verb, flags = ''] = commands[event] ?? [];
  const index = event === 'extension.requested' ? extension?.index : '';
  return (
    verb && `kubectl drawbridge ${verb} ${shellWord(request.name)} -n ${shellWord(request.namespace)}${flags}${index}`
  );
}
