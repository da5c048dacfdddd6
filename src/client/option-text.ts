import { durationBoundsOf } from '../access/policy/emergency-policy.ts';
import { showName } from '../access/policy/names.ts';
import type { StartConfig, StartWindow } from '../api/access/access-config.ts';
import type { KubeObject } from '../api/object.ts';
import { extensionsText } from './extension-text.ts';
import { templateSpecOf } from './request-state.ts';

/** What a template allows or requires besides durations, by name, such as `session`. */
export function optionsOf(template: KubeObject): (readonly [field: string, text: string])[] {
  const config = templateSpecOf(template).accessConfig;
  if (!config) return [];
  const { approvals, start, extension, emergency, session } = config;
  const options: [field: string, text: string][] = [];
  if (approvals?.claimWithin !== undefined)
    options.push([
      'claim',
      `approved access starts only when the requester claims it, within ${approvals.claimWithin} of the approval or of a later --at`,
    ]);
  if (start) options.push(['start', startText(start)]);
  if (extension) options.push(['extension', `access can be extended ${extensionsText(template)}`]);
  if (emergency)
    options.push([
      'emergency',
      `members of ${emergency.groups.map(showName).join(' or ')} can use --emergency, without approvals, max ${durationBoundsOf({ emergency: true }, config).maxDuration}; another person must review it within ${emergency.reviewWithin}`,
    ]);
  if (session?.via === 'Gateway') {
    const { idleAfter, record = 'Off', recordInput } = session;
    const recorded =
      record === 'Off'
        ? 'sessions are not recorded'
        : `the output${recordInput ? ' and the input' : ''} of sessions is recorded (${record})`;
    const idle = idleAfter === undefined ? '' : `; a session without data ends after ${idleAfter}`;
    options.push(['session', `sessions go through the gateway, and end with access${idle}; ${recorded}`]);
  }
  return options;
}

function startText({ maxAhead, windows = [] }: StartConfig): string {
  const ahead = maxAhead === undefined ? '' : `--at can be up to ${maxAhead} ahead`;
  const starts = windows.length === 0 ? '' : `access starts ${windowsText(windows)}`;
  return [ahead, starts].filter((text) => text !== '').join('; ');
}

/** `only on Mon, Tue 08:00 to 18:00 Europe/Berlin`. */
export function windowsText(windows: readonly StartWindow[]): string {
  const times = windows.map(({ days, from, to, timeZone }) => `${days.join(', ')} ${from} to ${to} ${timeZone}`);
  return times.length === 0 ? '' : `only on ${times.join(', or on ')}`;
}
