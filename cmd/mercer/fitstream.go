package main

import (
	"context"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
)

// streamLearners names the learners that read a table in passes.
func streamLearners() []string {
	var names []string
	for _, d := range learners.Catalogue() {
		if d.ReadsRows() {
			names = append(names, d.Name)
		}
	}
	return names
}

// checkpointLearners lists the learners that write checkpoints.
func checkpointLearners() []string {
	var names []string
	for _, d := range learners.Catalogue() {
		if d.Checkpoints() {
			names = append(names, d.Name)
		}
	}
	return names
}

// fitStream is fit for a table that stays in its file.
func (a *app) fitStream(ctx context.Context, f *fitFlags, dev backend.Device, file string, start time.Time) error {
	s, err := a.stream(file)
	if err != nil {
		return err
	}
	head, err := s.Head()
	if err != nil {
		return err
	}
	task := f.taskFor(head)
	if _, err := f.fitter(task); err != nil {
		return err
	}
	d, err := learners.Find(f.learner)
	if err != nil {
		return err
	}
	learn, err := d.MakeRows(task, f.parameters(d))
	if err != nil {
		return err
	}
	enc, err := s.Learn(ctx, f.rules(task))
	if err != nil {
		return err
	}
	rows, err := learners.Rows(s, enc)
	if err != nil {
		return err
	}
	read := time.Since(start)

	p := a.newProgress()
	options := f.options(enc, p)
	options.Checkpoint = f.checkpoint
	m, err := learn(ctx, dev, rows, options)
	p.close()
	if err != nil {
		return err
	}
	r := newFitReport(m, dev)
	r.setParameters(&f.learnerFlags, task)
	r.Assumed = f.assumed(head, task)
	r.N, r.D, _ = rows.Dims()
	r.Seconds.Read = read.Seconds()
	return a.conclude(ctx, f, r, modelfile.Bundle{Model: m, Encoder: enc}, start)
}
