import { Type } from 'typebox';
import { parseTime } from '../../kit/clock.ts';
import { listIn, own } from '../../kit/json-value.ts';
import { maxConditionMessage } from '../conditions.ts';
import { time } from '../schema/fields.ts';
import { column } from '../schema/kind.ts';

/** kube-bind's condition, which differs from metav1.Condition. */
export interface BindCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  /** The server sets it only if the status is False; other programs may always. */
  severity?: 'Error' | 'Warning' | 'Info';
  /** RFC 3339 of the last change of any field; 1970 if the stored time is missing or invalid. */
  lastTransitionTime: string;
  /** One word for programs. The server sets none if the status is True. */
  reason?: string;
  /** The reason, for people. */
  message?: string;
}

const maxConditions = 64;

const condition = Type.Object({
  type: Type.String({ description: 'The type of the condition.', minLength: 1, maxLength: 316 }),
  status: Type.String({ description: 'The status: True, False, or Unknown.', maxLength: 32 }),
  severity: Type.Optional(
    Type.String({ description: 'Of a False condition: Error, Warning, or Info.', maxLength: 32 }),
  ),
  lastTransitionTime: time('When any field of the condition last changed.'),
  reason: Type.Optional(Type.String({ description: 'The reason, one word for programs.', maxLength: 1024 })),
  message: Type.Optional(Type.String({ description: 'The reason, for people.', maxLength: maxConditionMessage })),
});

/** Any text as status and severity, because several programs write conditions. */
export const bindConditionList = Type.Array(condition, {
  description: 'One per type, Ready first.',
  maxItems: maxConditions,
});

/** The status of the condition Ready; empty without it. */
export const readyColumn = column(
  'Ready',
  '.status.conditions[?(@.type=="Ready")].status',
  'The status of the condition Ready, which summarizes the other conditions.',
);

/** Lenient: at most 64, one per type, without invalid entries or fields. Never throws. */
export function readBindConditions(status: unknown): BindCondition[] {
  const byType = new Map<string, BindCondition>();
  for (const entry of listIn(status, 'conditions').slice(0, maxConditions)) {
    const read = readCondition(entry);
    if (read && !byType.has(read.type)) byType.set(read.type, read);
  }
  return [...byType.values()];
}

function readCondition(entry: unknown): BindCondition | undefined {
  const type = own(entry, 'type');
  const status = own(entry, 'status');
  const severity = own(entry, 'severity');
  const time = own(entry, 'lastTransitionTime');
  const reason = own(entry, 'reason');
  const message = own(entry, 'message');
  if (typeof type !== 'string' || type === '') return undefined;
  if (status !== 'True' && status !== 'False' && status !== 'Unknown') return undefined;
  return {
    type,
    status,
    ...(severity === 'Error' || severity === 'Warning' || severity === 'Info' ? { severity } : {}),
    lastTransitionTime: typeof time === 'string' && parseTime(time) !== undefined ? time : '1970-01-01T00:00:00Z',
    ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
    ...(typeof message === 'string' && message !== '' ? { message } : {}),
  };
}
