//! Selection, comparison and every renderer on runs made up for the purpose.

mod comparing;
mod distributions;
mod fixture;
mod golden;
mod hist;
mod judging;
mod ministat;
mod noise;
mod properties;
mod rows;
mod selecting;
mod titles;
