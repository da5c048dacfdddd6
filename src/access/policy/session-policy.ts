import type { Grant, GrantedRule, GrantSession, TemplateRule } from '../../api/access/grant.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { gatewayGroup, grantProxies } from '../../api/gateway/names.ts';
import { quote } from '../../kit/errors.ts';
import { parseGoDuration } from '../../kit/go-duration.ts';
import type { PolicyRule } from '../../rbac/roles.ts';
import { describeRight, uncovered } from '../../rbac/rule-cover.ts';
import { confinedTo, readRule } from './granted-rules.ts';
import { refuse, type Violation } from './policy.ts';

type SessionConfig = Pick<AccessConfig, 'session' | 'grantTo' | 'rules'>;

/**
 * Undefined for direct access. Emergencies need no recording: a failed recorder locks no one out.
 */
export function sessionOf({ session }: Pick<AccessConfig, 'session'>, isEmergency = false): GrantSession | undefined {
  if (session?.via !== 'Gateway') return undefined;
  const { idleAfter, record = 'Off', recordInput = false } = session;
  const idle = idleAfter === undefined ? {} : { idleAfter };
  if (record === 'Off') return { via: 'Gateway', ...idle };
  return {
    via: 'Gateway',
    ...idle,
    record: isEmergency ? 'BestEffort' : record,
    ...(recordInput ? { recordInput } : {}),
  };
}

const core = (resources: string[], verbs: string[]): TemplateRule => ({ apiGroups: [''], resources, verbs });
/** What the gateway passes to the granted pod. */
const passedRules: readonly TemplateRule[] = [
  readRule,
  core(['pods/log'], ['get']),
  core(['pods/exec', 'pods/attach', 'pods/portforward'], ['get', 'create']),
];

const field = 'spec.accessConfig';
const minute = 60_000_000_000n;

/** Fields that are invalid or without effect, or that grant sessions to whole groups. */
export function sessionViolations({ session, grantTo }: SessionConfig): Violation[] {
  const { via, idleAfter, record = 'Off', recordInput = false } = session ?? {};
  const violations: Violation[] = [];
  const add = (name: string, problem: string): void => {
    violations.push(refuse('InvalidTemplate', `${field}.${name} ${problem}`, `${field}.${name}`, 422));
  };
  if (idleAfter !== undefined && via !== 'Gateway') {
    add(
      'session.idleAfter',
      'is set without via: Gateway; only the gateway can end idle sessions: set via: Gateway, or remove idleAfter',
    );
  } else if (idleAfter !== undefined) {
    const parsed = parseGoDuration(idleAfter);
    if (!('ns' in parsed) || parsed.ns < minute || parsed.ns > 24n * 60n * minute) {
      add('session.idleAfter', `is ${quote(idleAfter)}; write a Go duration from 1m to 24h, for example 15m`);
    }
  }
  if (record !== 'Off' && via !== 'Gateway') {
    add(
      'session.record',
      `is ${record} without via: Gateway; only the gateway can record sessions: set via: Gateway, or remove record`,
    );
  }
  if (recordInput && record === 'Off') {
    add(
      'session.recordInput',
      'is true, and sessions are not recorded; set record to BestEffort or Required, or remove recordInput',
    );
  }
  if (via === 'Gateway' && grantTo === 'AllowedGroups') {
    const problem =
      'is AllowedGroups, and session.via is Gateway; a session through the gateway belongs to one person: set grantTo to Requester';
    add('grantTo', problem);
  }
  return violations;
}

/** With `via: Gateway`, for each permission whose calls the gateway does not pass. */
export function gatewayRulesViolations(config: SessionConfig): Violation[] {
  if (!sessionOf(config)) return [];
  return uncovered(passedRules, config.rules ?? []).map((right) => {
    const message =
      `${field}.rules hands out ${describeRight(right)}, which the gateway does not pass; allowed are get, list, and watch of pods, ` +
      'get of pods/log, and get and create of pods/exec, pods/attach, and pods/portforward: remove it, or set session.via to Direct' +
      ' (then the gateway neither records nor ends sessions)';
    return refuse('InvalidTemplate', message, `${field}.rules`, 422);
  });
}

/** Read the pod, and reach it through the gateway, which enforces `grant.rules`. */
export const gatewayRoleRules = (pod: string, grantName: string): PolicyRule[] => [
  ...confinedTo(pod, [readRule]),
  { apiGroups: [gatewayGroup], resources: [grantProxies], resourceNames: [grantName], verbs: ['get', 'create'] },
];

/** For the subject of a Gateway grant. */
export function gatewayCommand(request: {
  readonly namespace: string;
  readonly name: string;
  readonly grant: Pick<Grant, 'pod' | 'rules'>;
}): string {
  const { pod, rules = [] } = request.grant;
  const exec: GrantedRule = { ...core(['pods/exec'], ['create']), resourceNames: [pod.name] };
  const command = uncovered(rules, [exec]).length === 0 ? 'exec' : 'use';
  return `kubectl drawbridge ${command} ${request.name} -n ${request.namespace}`;
}
