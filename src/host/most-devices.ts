/**
 * Every rank has a host program and a command list: 65,536 of the smallest take seconds, a million would take minutes.
 */
export const mostDevices = 65_536;
