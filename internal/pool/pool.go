// Package pool runs calls on several devices in parallel, and divides a device into several devices.
package pool

import (
	"errors"
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// Each calls f for 0, …, n−1. The devices work in parallel, and each device works on one call at a
// time. After an error, Each starts no further call, and returns the error of the call with the
// lowest number. Without devices, Each returns an error.
func Each(devices []backend.Device, n int, f func(dev backend.Device, i int) error) error {
	if len(devices) == 0 {
		return errors.New("no device was given")
	}
	var mu sync.Mutex
	var failure error
	next, firstFailed := 0, n
	nextIndex := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next-1 < firstFailed
	}
	work := func(dev backend.Device) {
		for {
			i, ok := nextIndex()
			if !ok {
				return
			}
			if err := f(dev, i); err != nil {
				mu.Lock()
				if i < firstFailed {
					firstFailed, failure = i, err
				}
				mu.Unlock()
			}
		}
	}
	var group sync.WaitGroup
	for _, dev := range devices[1:min(len(devices), n)] {
		group.Go(func() { work(dev) })
	}
	work(devices[0])
	group.Wait()
	return failure
}

// Share divides the threads and the memory of dev, a processor, among new devices for n calls that have too little
// work for all threads. The number of new devices is the smaller of n and the number of threads. If this number is
// less than 2, Share returns no devices. The caller must close the devices.
func Share(dev backend.Device, n int) (devices []backend.Device, err error) {
	info := dev.Info()
	count := min(info.Threads, n)
	if count < 2 {
		return nil, nil
	}
	for i := range count {
		device, err := backend.Open(info.Device, backend.Config{Threads: (info.Threads + i) / count, Memory: max(info.Memory/int64(count), 1)})
		if err != nil {
			for _, dev := range devices {
				dev.Close()
			}
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}
